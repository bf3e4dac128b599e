#!/bin/sh
docker run -d --device /dev/kfd --device /dev/dri/card1 --device /dev/dri/renderD129 \
  -e HIP_VISIBLE_DEVICES=1 -v ollama:/root/.ollama -p 11434:11434 ollama/ollama:rocm
