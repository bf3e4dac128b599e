#!/bin/sh
docker run -d --gpus 1 --device /dev/nvidia0 --device /dev/nvidia1 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
