#!/bin/sh
docker run -d --device /dev/kfd --device /dev/dri --security-opt seccomp=unconfined --cap-add SYS_PTRACE -e CUDA_VISIBLE_DEVICES=0 vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-4B
