# form: https://apptainer.org/docs/user/latest/gpu.html
apptainer exec --nv --cleanenv docker://vllm/vllm-openai:v0.31.0 vllm serve Qwen/Qwen3-8B
