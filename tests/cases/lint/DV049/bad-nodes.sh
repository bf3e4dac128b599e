docker run --device /dev/kfd --device /dev/dri vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
