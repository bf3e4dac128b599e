docker run --ipc=host --group-add=video --cap-add=SYS_PTRACE --security-opt seccomp=unconfined --device /dev/kfd --device /dev/dri vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
