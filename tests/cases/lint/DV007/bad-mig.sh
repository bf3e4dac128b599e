#!/bin/sh
docker run -d --gpus all -e CUDA_VISIBLE_DEVICES=MIG-377e0049-554c-540b-93c6-d0976f8426cb vllm/vllm-openai:v0.10.0 --model Qwen/Qwen3-4B
