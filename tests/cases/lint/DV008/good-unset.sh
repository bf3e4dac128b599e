#!/bin/bash
#SBATCH --gres=gpu:4
unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
srun --container-image=vllm/vllm-openai-rocm:v0.31.0 vllm serve Qwen/Qwen3-32B -tp 4
