#!/bin/sh
# host: two-amd
export HIP_VISIBLE_DEVICES=0,1
exec vllm serve Qwen/Qwen3-4B --host 127.0.0.1 -tp 2
