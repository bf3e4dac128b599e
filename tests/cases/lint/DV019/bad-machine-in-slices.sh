# snapshot: h100-mig-slices
docker run --gpus all --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B --tensor-parallel-size 2
