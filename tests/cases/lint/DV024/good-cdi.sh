#!/bin/sh
docker run -d --device nvidia.com/gpu=all vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
