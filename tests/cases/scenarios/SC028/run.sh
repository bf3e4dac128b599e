podman run --rm --device /dev/kfd --device /dev/dri --ipc=host docker.io/vllm/vllm-openai-rocm:v0.20.0 --model Qwen/Qwen3-8B
