export ROCR_VISIBLE_DEVICES=1
export CUDA_VISIBLE_DEVICES=0,1
exec vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 2 --distributed-executor-backend ray
