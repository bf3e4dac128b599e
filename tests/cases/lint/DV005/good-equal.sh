#!/bin/sh
# host: two-amd-numbered
export HIP_VISIBLE_DEVICES=0
export CUDA_VISIBLE_DEVICES=0
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
