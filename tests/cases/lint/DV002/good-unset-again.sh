#!/bin/sh
# host: one-nvidia
export CUDA_VISIBLE_DEVICES=4
unset CUDA_VISIBLE_DEVICES
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
