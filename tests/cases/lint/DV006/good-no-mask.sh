#!/bin/sh
# host: two-amd
exec vllm serve Qwen/Qwen3-4B --host 127.0.0.1 --tensor-parallel-size 2
