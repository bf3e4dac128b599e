docker run --ipc=host --cap-add=SYS_PTRACE --security-opt seccomp=unconfined --device /dev/kfd --device /dev/dri \
  rocm/vllm:latest vllm serve Qwen/Qwen3-8B
