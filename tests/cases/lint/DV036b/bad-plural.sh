#!/bin/sh
docker run -d --gpus all -e NVIDIA_DISABLE_REQUIRES=true vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
