docker run --gpus all -e CUDA_VISIBLE_DEVICES= vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
