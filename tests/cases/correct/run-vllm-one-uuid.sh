# form: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
docker run --rm --gpus '"device=GPU-18a3e86f-4c0e-cd9f-59c3-55488c4b0c24"' --ipc=host \
  vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
