#!/bin/sh
docker run -d --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_DRIVER_CAPABILITIES=all vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
