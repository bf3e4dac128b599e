#!/bin/sh
# host: docker-29
docker run -d --gpus 2 --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B -tp 2
