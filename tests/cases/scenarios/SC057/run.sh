#!/bin/sh
docker run -d --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.4.1 --model meta-llama/Meta-Llama-3-8B-Instruct --tensor-parallel-size 2
