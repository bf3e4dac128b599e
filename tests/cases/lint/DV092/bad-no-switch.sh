exec vllm serve Qwen/Qwen3-8B --tool-call-parser hermes
