#!/usr/bin/env bash
set -euo pipefail
IMAGE="${IMAGE:-rocm/vllm:rocm7.0_vllm_0.11}"
ARGS=(
  --device /dev/kfd            # compute
  --device=/dev/dri/renderD128
  --group-add 992 --group-add "$(getent group video | cut -d: -f3)"
  --cap-add=SYS_PTRACE
  --security-opt seccomp=unconfined
)
if [[ -n "${BIG:-}" ]]; then
  ARGS+=(--shm-size 16g)
fi
sudo docker run -itd --rm "${ARGS[@]}" --name llm "$IMAGE" \
  vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 > run.log 2>&1
