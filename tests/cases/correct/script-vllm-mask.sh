# form: https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html
#!/bin/sh
CUDA_VISIBLE_DEVICES=0,1 vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2
