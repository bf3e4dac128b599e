sudo podman run --device /dev/kfd --device /dev/dri --shm-size 16g vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
