#!/bin/sh
# host: docker-legacy
docker run -d --runtime nvidia --restart always --ipc=host -e NVIDIA_VISIBLE_DEVICES=all vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B -tp 2
