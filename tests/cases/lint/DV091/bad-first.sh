exec vllm serve Qwen/Qwen3-8B --reasoning-parser deepseek_r1
