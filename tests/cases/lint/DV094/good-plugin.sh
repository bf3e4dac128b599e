docker run --gpus all vllm/vllm-openai:v0.31.0 --model nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 \
  --reasoning-parser-plugin nano_v3_reasoning_parser.py --reasoning-parser nano_v3
