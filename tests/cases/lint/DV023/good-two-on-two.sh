#!/bin/sh
# host: two-nvidia
:
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1 --tensor-parallel-size 2
