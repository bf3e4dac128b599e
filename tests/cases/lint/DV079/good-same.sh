#!/bin/sh
docker run -d --gpus 1 --device /dev/nvidiactl --device /dev/nvidia-uvm --device /dev/nvidia0 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-4B
