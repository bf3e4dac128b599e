#!/bin/sh
# host: nixos
docker run -d --gpus all vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
