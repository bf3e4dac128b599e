docker run --gpus all vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
