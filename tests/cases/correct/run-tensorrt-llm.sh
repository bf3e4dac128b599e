# works on: two-3090-nvml
docker run --rm -it --ipc host --gpus all --ulimit memlock=-1 --ulimit stack=67108864 -p 8000:8000 nvcr.io/nvidia/tensorrt-llm/release:1.0.0 trtllm-serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --tp_size 2
