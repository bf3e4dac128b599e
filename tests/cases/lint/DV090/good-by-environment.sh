#!/bin/sh
# host: no-card
VLLM_API_KEY="$(cat -- /srv/selfhost/key)"
export VLLM_API_KEY
exec python -m vllm.entrypoints.openai.api_server --model /models/qwen3-4b --host 127.0.0.1
