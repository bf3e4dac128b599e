docker run --gpus 'device=0,1' --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B -tp 2
