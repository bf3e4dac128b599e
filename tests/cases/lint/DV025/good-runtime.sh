#!/bin/sh
# host: jetson
docker run -d --runtime nvidia --network=host --ipc=host dustynv/vllm:r36.4.0 vllm serve Qwen/Qwen3-4B
