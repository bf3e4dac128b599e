exec python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs 64
