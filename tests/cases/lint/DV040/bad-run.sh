docker run --ipc=host --device /dev/dri rocm/vllm-dev:nightly vllm serve Qwen/Qwen3-8B
