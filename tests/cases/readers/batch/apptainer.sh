export CUDA_VISIBLE_DEVICES=3
export APPTAINERENV_NCCL_DEBUG=INFO
apptainer exec --nv docker://vllm/vllm-openai:v0.11.0 vllm serve m
apptainer -q exec --nv --cleanenv --env A=1,CUDA_VISIBLE_DEVICES=0,1 --bind /data,/a:/b vllm.sif vllm serve m
singularity run -e --rocm vllm.sif
srun --gpus 1 apptainer exec --nv vllm.sif vllm serve m
enroot start --rw -e NVIDIA_VISIBLE_DEVICES -m /a:/b vllm vllm serve m
