#!/bin/sh
# host: wsl2-two
docker run -d --gpus all --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B --tensor-parallel-size 2
