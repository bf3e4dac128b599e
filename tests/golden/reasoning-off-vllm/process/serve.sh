#!/bin/sh
# selfhost-name: it
# it: Qwen/Qwen3-4B on vllm 0.33.0, NVIDIA H100 80GB HBM3
# plan c78dd38b4415d8d9e5b96bdbcd9d82738a4a8f21e5de5e2f9f1a0077763c9621
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
  --max-model-len 32768 \
  --max-num-seqs 32 \
  --quantization fp8_per_channel \
  --reasoning-parser qwen3 \
  --default-chat-template-kwargs '{"enable_thinking":false,"thinking":false}' \
  --enable-auto-tool-choice \
  --tool-call-parser hermes \
  --disable-fastapi-docs \
  --disable-access-log-for-endpoints /health,/metrics \
  --override-generation-config '{"min_p":0.0,"temperature":0.7,"top_k":20,"top_p":0.8}'
