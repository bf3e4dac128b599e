#!/bin/bash
# docker run --gpus all commented/out:1
cat > note.txt <<EOF
docker run "never closed
EOF
start() {
  local gpu=$1; shift
  docker run --gpus "device=$gpu" "$@" i/a
}
OPTS="--ipc host --shm-size 8g"
i=0
for i in 0 1; do
  docker run -d -e CUDA_VISIBLE_DEVICES=$i $OPTS $EXTRA vllm/vllm-openai:$TAG --port $((8000 + i))
done
if lspci | grep -q NVIDIA; then GPU="--gpus all"; else GPU="--device /dev/dri"; fi
time nohup env A=1 docker run $GPU ${MORE:-} i/b &
ssh box 'docker run --gpus all far/away'
bash -c "docker run --gpus 1 i/c"
ID=$(docker run -d --gpus 2 i/d)
CMD="docker run --gpus 3 i/e"
eval "$CMD"
$CMD
