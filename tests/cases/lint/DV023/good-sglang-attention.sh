#!/bin/sh
docker run -d --gpus 8 --shm-size 32g --ipc=host lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp 8 --enable-dp-attention
