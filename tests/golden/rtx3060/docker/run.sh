#!/bin/sh
# it: Qwen/Qwen3-4B on vllm 0.33.0, NVIDIA GeForce RTX 3060
# plan 008dfa7e71240a73c0c4d5d7a6fe5f85b2f29bb3c01c45c98c0d49d0332f8f2b
# Runs without selfhost:  sh run.sh
# It starts the container in the background and prints its id; README.txt says how to see, stop and remove it.
set -eu

docker network inspect selfhost-it >/dev/null 2>&1 ||
  docker network create --label io.selfhost.name=it --label io.selfhost.digest=008dfa7e71240a73c0c4d5d7a6fe5f85b2f29bb3c01c45c98c0d49d0332f8f2b --label io.selfhost.version=0.1.0 selfhost-it >/dev/null
docker volume inspect selfhost-cache-vllm-openai-v0.33.0-sm_86 >/dev/null 2>&1 ||
  docker volume create --label io.selfhost.name=it --label io.selfhost.digest=008dfa7e71240a73c0c4d5d7a6fe5f85b2f29bb3c01c45c98c0d49d0332f8f2b --label io.selfhost.version=0.1.0 selfhost-cache-vllm-openai-v0.33.0-sm_86 >/dev/null

# Why:
#   --gpus: by UUID, which stays when cards are added or change their slots; no CDI name of them was seen here
#   --user: the image's own user without root
#   --cap-drop: a server on a port above 1024 needs no capability
#   --security-opt no-new-privileges:true: nobody becomes more than he is, by no setuid program
#   --network selfhost-it: a network of its own
#   --publish: this machine only
#   --shm-size: processes of one engine hand data over by it; Docker's 64 MiB are too few
#   --ulimit memlock=-1:-1: pinned memory for transfers to the card
#   --ulimit stack=67108864:67108864: as NVIDIA asks for it; deep C++ frames of compilers
#   --mount /model: this model's folder alone, read-only
#   --mount /var/tmp: a volume for what is compiled at the first start, for this image and card only
#   --env-file: the key, in a file for its owner only and not in this one
#   --env HOME: caches go into the volume: every image has this folder, writable for every user
#   --env USER: torch asks for a name, and the image does not know this user's number
#   --env TORCHINDUCTOR_CACHE_DIR: its default is in /tmp, where nothing is kept
#   --env VLLM_NO_USAGE_STATS: no usage report to vLLM's makers
#   --env HF_HUB_OFFLINE: the weights are mounted: no hub is asked, and no token of it is in here
#   --env PYTHONUNBUFFERED: log lines of several processes come in the order in which they were written
#   --env CUDA_DEVICE_ORDER: cards are numbered as nvidia-smi numbers them, not by speed
#   --init: reaps the engine's children and passes signals on
#   --restart: a start that fails stops after three tries; `selfhost up` lets it start by itself after one that was checked
#   --stop-timeout: vLLM gets 30 s to free the card; killed before, it may leave memory behind
#   --health-cmd: failures do not count for 12 min: 7.5 GiB from a disk of 100 MB/s are 81 s, and a first start compiles for up to 600 s; so starting is loading, unhealthy is hung
#   --log-driver: bounded, so that a log never fills the disk
#   vllm/vllm-openai:v0.33.0: the tag that the project's rule gives for 0.33.0; the pull shows whether it exists, and its digest is kept; the newest tag that was read somewhere is v0.31.0
#   --host: inside only; the published port says who reaches it

docker run --detach \
  --name selfhost-it \
  --gpus device=GPU-30600000-5909-1af0-2d07-ba92fc076426,driver=nvidia \
  --user 2000:0 \
  --cap-drop ALL \
  --security-opt no-new-privileges:true \
  --network selfhost-it \
  --publish 127.0.0.1:8000:8000 \
  --shm-size 1073741824b \
  --ulimit memlock=-1:-1 \
  --ulimit stack=67108864:67108864 \
  --mount type=bind,source=/srv/models/qwen3-4b,target=/model,readonly \
  --mount type=volume,source=selfhost-cache-vllm-openai-v0.33.0-sm_86,target=/var/tmp \
  --env-file /srv/selfhost/it/engine.env \
  --env HOME=/var/tmp \
  --env USER=selfhost \
  --env TORCHINDUCTOR_CACHE_DIR=/var/tmp/.cache/torchinductor \
  --env VLLM_NO_USAGE_STATS=1 \
  --env VLLM_DO_NOT_TRACK=1 \
  --env HF_HUB_OFFLINE=1 \
  --env TRANSFORMERS_OFFLINE=1 \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --env DO_NOT_TRACK=1 \
  --env PYTHONUNBUFFERED=1 \
  --env CUDA_DEVICE_ORDER=PCI_BUS_ID \
  --init \
  --restart on-failure:3 \
  --stop-timeout 30 \
  --health-cmd 'python3 -c '"'"'import urllib.request as u; u.build_opener(u.ProxyHandler({})).open('"'"'"'"'"'"'"'"'http://127.0.0.1:8000/health'"'"'"'"'"'"'"'"', timeout=20)'"'"'' \
  --health-interval 15s \
  --health-timeout 25s \
  --health-start-period 720s \
  --health-retries 6 \
  --log-driver json-file \
  --log-opt max-size=64m \
  --log-opt max-file=3 \
  --label io.selfhost.name=it \
  --label io.selfhost.digest=008dfa7e71240a73c0c4d5d7a6fe5f85b2f29bb3c01c45c98c0d49d0332f8f2b \
  --label io.selfhost.version=0.1.0 \
  vllm/vllm-openai:v0.33.0 \
  /model \
  --host 0.0.0.0 \
  --port 8000 \
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
