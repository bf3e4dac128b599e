#!/bin/sh
# host: no-card
:
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1 --api-key not-a-real-key
