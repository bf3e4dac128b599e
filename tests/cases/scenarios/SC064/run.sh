#!/bin/sh
docker run -d --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B
