#!/bin/sh
# host: jetson-default
docker run -d --gpus all --network=host --ipc=host --device /dev/nvidiactl dustynv/vllm:r36.4.0 vllm serve Qwen/Qwen3-4B
