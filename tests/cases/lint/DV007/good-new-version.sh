#!/bin/sh
docker run -d --gpus all -e CUDA_VISIBLE_DEVICES=GPU-6f1e2d3c-0000-0000-0000-000000000001 vllm/vllm-openai:v0.33.0 --model Qwen/Qwen3-4B
