# form: https://instinct.docs.amd.com/projects/container-toolkit/en/latest/
docker run --rm --runtime=amd -e AMD_VISIBLE_DEVICES=0,1 --ipc=host vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
docker run --rm --runtime=amd -e AMD_VISIBLE_DEVICES=all rocm/dev-ubuntu-24.04 amd-smi monitor
