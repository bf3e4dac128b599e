export VLLM_ATTENTION_BACKEND=FLASHINFER
exec vllm serve Qwen/Qwen3-8B
