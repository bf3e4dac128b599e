#!/bin/sh
# host: two-nvidia
export CUDA_VISIBLE_DEVICES=GPU-6f1e2d3c-0000-0000-0000-000000000001
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
