podman run --rm --device nvidia.com/gpu=all --security-opt=label=disable --ipc=host docker.io/vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
