# form: https://instinct.docs.amd.com/projects/container-toolkit/en/latest/
podman run --rm --device /dev/kfd --device /dev/dri --group-add keep-groups --ipc=host \
  docker.io/vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
