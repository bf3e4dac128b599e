#!/bin/sh
docker run -d --gpus all -e NVIDIA_DISABLE_REQUIRE=true vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
