#!/bin/sh
docker run -d --gpus '"device=2,3"' --ipc=host -e CUDA_VISIBLE_DEVICES=2,3 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B -tp 2
