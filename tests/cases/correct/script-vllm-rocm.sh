# form: https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html
#!/bin/sh
export HIP_VISIBLE_DEVICES=0
exec vllm serve Qwen/Qwen3-8B
