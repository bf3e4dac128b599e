exec vllm serve Qwen/Qwen3-4B-Instruct-2507 --reasoning-parser qwen3
