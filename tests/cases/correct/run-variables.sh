# form: https://www.gnu.org/software/bash/manual/html_node/Arrays.html
#!/usr/bin/env bash
set -euo pipefail
IMAGE=vllm/vllm-openai:v0.31.0
GPU="${1:?give a GPU uuid}"
ARGS=(--rm --ipc=host -p 127.0.0.1:8000:8000 -v "$HOME/.cache/huggingface:/root/.cache/huggingface")
docker run "${ARGS[@]}" --gpus "device=$GPU" "$IMAGE" --model Qwen/Qwen3-8B
