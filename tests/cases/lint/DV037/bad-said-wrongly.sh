#!/bin/sh
# host: mixed-nvidia
export CUDA_DEVICE_ORDER=FASTEST_FIRST
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
