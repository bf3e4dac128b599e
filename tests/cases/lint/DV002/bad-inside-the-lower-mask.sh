#!/bin/sh
# host: two-amd
export ROCR_VISIBLE_DEVICES=1
export HIP_VISIBLE_DEVICES=1
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
