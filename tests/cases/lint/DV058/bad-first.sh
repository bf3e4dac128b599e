# snapshot: amd-three-cards-rootless-podman
podman run --group-add keep-groups --ipc=host --device /dev/kfd --device /dev/dri/renderD128 \
  vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
