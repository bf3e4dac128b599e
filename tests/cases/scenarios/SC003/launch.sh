#!/bin/sh
export HIP_VISIBLE_DEVICES=1
export ROCR_VISIBLE_DEVICES=1
exec vllm serve Qwen/Qwen3-4B
