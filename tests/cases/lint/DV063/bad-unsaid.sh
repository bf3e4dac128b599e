#!/bin/sh
# host: one-intel
export ZE_AFFINITY_MASK=0
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
