#!/bin/sh
# host: mig
docker run -d --gpus device=GPU-6f1e2d3c-0000-0000-0000-000000000000 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
