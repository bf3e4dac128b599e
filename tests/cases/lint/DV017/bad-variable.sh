#!/bin/sh
# host: two-nvidia
docker run -d --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=1 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
