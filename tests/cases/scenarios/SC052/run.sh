docker run --rm --gpus all --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
