#!/bin/sh
docker run -d --gpus 2 --shm-size 16g vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B -tp 2
