# snapshot: two-5090
docker run --gpus all -e CUDA_VISIBLE_DEVICES=NoDevFiles vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
