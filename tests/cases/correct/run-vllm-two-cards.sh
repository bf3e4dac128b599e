# form: https://docs.vllm.ai/en/latest/deployment/docker.html
docker run --gpus '"device=0,1"' --shm-size 16g -p 127.0.0.1:8000:8000 \
  -v models:/root/.cache/huggingface vllm/vllm-openai:v0.31.0 \
  --model Qwen/Qwen3-32B-FP8 --tensor-parallel-size 2 --reasoning-parser qwen3
