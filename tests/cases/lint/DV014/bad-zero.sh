#!/bin/sh
# host: docker-28
docker run -d --gpus 0 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
