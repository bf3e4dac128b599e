#!/bin/sh
docker run -d --device /dev/kfd --device /dev/dri/renderD128 --security-opt seccomp=unconfined --cap-add SYS_PTRACE vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-4B
