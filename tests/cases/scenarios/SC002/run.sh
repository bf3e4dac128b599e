#!/bin/sh
export ROCR_VISIBLE_DEVICES=1
export CUDA_VISIBLE_DEVICES=1
exec python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-4B
