#!/bin/sh
# host: two-nvidia-nodes
docker run -d --gpus all --ipc=host --device /dev/nvidia0 --device /dev/nvidia1 --device /dev/nvidiactl vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B -tp 2
