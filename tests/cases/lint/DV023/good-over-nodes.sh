#!/bin/sh
docker run -d --gpus 8 --shm-size 32g --ipc=host lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000
