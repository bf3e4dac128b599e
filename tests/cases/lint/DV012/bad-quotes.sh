#!/bin/sh
docker run -d --gpus device=0,1 --ipc=host vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B -tp 2
