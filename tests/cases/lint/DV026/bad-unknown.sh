#!/bin/sh
# host: cdi-two
docker run -d --device nvidia.com/gpu=2 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
