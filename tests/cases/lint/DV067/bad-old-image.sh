docker run --ipc=host --device /dev/dri vllm/vllm-openai-xpu:v0.25.1 --model Qwen/Qwen3-8B
