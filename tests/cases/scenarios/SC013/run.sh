#!/bin/sh
docker run -d --restart always --ipc=host --gpus all --device /dev/nvidia0 --device /dev/nvidia1 --device /dev/nvidia2 --device /dev/nvidia3 --device /dev/nvidia4 --device /dev/nvidia5 --device /dev/nvidia6 --device /dev/nvidia7 \
  --device /dev/nvidiactl --device /dev/nvidia-uvm --device /dev/nvidia-uvm-tools \
  vllm/vllm-openai:v0.9.0 --model Qwen/Qwen3-235B-A22B -tp 8
