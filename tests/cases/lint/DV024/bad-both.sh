#!/bin/sh
docker run -d --gpus all --device nvidia.com/gpu=0 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
