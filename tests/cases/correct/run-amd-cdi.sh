# form: https://instinct.docs.amd.com/projects/container-toolkit/en/latest/
docker run --rm --device amd.com/gpu=all --ipc=host vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
