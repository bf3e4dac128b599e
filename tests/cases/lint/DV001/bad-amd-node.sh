#!/bin/sh
docker run -d --device /dev/kfd --device /dev/dri/renderD129 --security-opt seccomp=unconfined --cap-add SYS_PTRACE -e HIP_VISIBLE_DEVICES=1 vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-4B
