#!/bin/sh
# host: two-nvidia
export CUDA_VISIBLE_DEVICES=1,0
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
