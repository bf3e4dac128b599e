export ROCR_VISIBLE_DEVICES=1
exec vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --distributed-executor-backend ray
