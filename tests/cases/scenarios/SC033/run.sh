docker run --rm --ipc=host --security-opt seccomp=unconfined --cap-add SYS_PTRACE --device /dev/kfd --device /dev/dri/renderD130 vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
