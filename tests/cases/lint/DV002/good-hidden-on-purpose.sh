docker run --gpus all -e CUDA_VISIBLE_DEVICES=-1 -e OLLAMA_VULKAN=1 ollama/ollama
