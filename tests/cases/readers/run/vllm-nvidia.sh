#!/bin/sh
docker run --runtime nvidia --gpus all \
    -v ~/.cache/huggingface:/root/.cache/huggingface \
    --env "HF_HOME=/root/.cache/huggingface" \
    -p 8000:8000 \
    --ipc=host \
    vllm/vllm-openai:v0.11.0 \
    --model Qwen/Qwen3-0.6B
