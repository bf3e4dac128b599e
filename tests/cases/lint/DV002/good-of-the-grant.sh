#!/bin/sh
docker run -d --gpus 1 -e CUDA_VISIBLE_DEVICES=0 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
