#!/bin/sh
# selfhost-name: it
# it: Qwen/Qwen3-4B on vllm 0.33.0, NVIDIA GeForce RTX 3060
# plan 8171f0bb2a2b264c98eba6007ae3b12ddd7763dda984023e9193958cbf839f0a
# Runs without selfhost:  sh serve.sh
# It stays in the foreground; Ctrl-C or SIGTERM ends it. The key is read from its file, never written here.
set -eu

KEY_FILE=/srv/selfhost/it/key
if [ ! -r "$KEY_FILE" ]; then
  echo "serve.sh: the key file $KEY_FILE cannot be read" >&2
  exit 78
fi
VLLM_API_KEY="$(cat -- "$KEY_FILE")"
if [ -z "$VLLM_API_KEY" ]; then
  echo "serve.sh: the key file $KEY_FILE is empty" >&2
  exit 78
fi
export VLLM_API_KEY
unset KEY_FILE

# The engine needs no hub token: its weights are on this disk.
unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGINGFACE_HUB_TOKEN || true

export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_VISIBLE_DEVICES=1
export DO_NOT_TRACK=1
export HF_HUB_DISABLE_TELEMETRY=1
export HF_HUB_OFFLINE=1
export PYTHONUNBUFFERED=1
export TRANSFORMERS_OFFLINE=1
export VLLM_DO_NOT_TRACK=1
export VLLM_NO_USAGE_STATS=1

exec /srv/selfhost/engine/bin/python \
  -m vllm.entrypoints.openai.api_server \
  --host 127.0.0.1 \
  --port 8000 \
  --model /srv/models/qwen3-4b \
  --served-model-name qwen3-4b \
  --max-model-len 8192 \
  --max-num-seqs 32 \
  --dtype bfloat16 \
  --reasoning-parser qwen3 \
  --default-chat-template-kwargs '{"enable_thinking":true,"thinking":true}' \
  --enable-auto-tool-choice \
  --tool-call-parser hermes \
  --disable-fastapi-docs \
  --disable-access-log-for-endpoints /health,/metrics
