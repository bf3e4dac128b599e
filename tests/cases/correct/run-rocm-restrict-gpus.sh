# form: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
docker run --device /dev/kfd --device /dev/dri/renderD128 --device /dev/dri/renderD129 \
  --security-opt seccomp=unconfined --ipc=host rocm/vllm-custom:v1 vllm serve Qwen/Qwen3-8B
