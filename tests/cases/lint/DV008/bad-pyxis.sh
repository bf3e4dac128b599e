#!/bin/bash
#SBATCH --gres=gpu:4
export ROCR_VISIBLE_DEVICES=4,5,6,7
srun --export=ALL --container-image=vllm/vllm-openai-rocm:v0.31.0 vllm serve Qwen/Qwen3-32B -tp 4
