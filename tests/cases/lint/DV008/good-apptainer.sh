#!/bin/bash
#SBATCH --gres=gpu:1
apptainer exec --nv --cleanenv docker://vllm/vllm-openai:v0.31.0 vllm serve Qwen/Qwen3-4B
