# form: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
docker run --rm -ti --device nvidia.com/gpu=all --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
