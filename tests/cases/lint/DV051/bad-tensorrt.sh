docker run --gpus all -p 8000:8000 nvcr.io/nvidia/tensorrt-llm/release:1.0.0 \
  trtllm-serve Qwen/Qwen3-8B --tp_size 2
