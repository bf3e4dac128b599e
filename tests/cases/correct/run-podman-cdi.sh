# form: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
podman run --rm --device nvidia.com/gpu=all --security-opt=label=disable --ipc=host \
  docker.io/vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
