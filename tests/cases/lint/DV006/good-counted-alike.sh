#!/bin/sh
# host: two-amd-numbered
export HIP_VISIBLE_DEVICES=1
exec vllm serve Qwen/Qwen3-4B --host 127.0.0.1
