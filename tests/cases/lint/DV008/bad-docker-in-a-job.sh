#!/bin/bash
#SBATCH --gres=gpu:2
srun docker run --rm --gpus all --ipc=host -e CUDA_VISIBLE_DEVICES vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-32B -tp 2
