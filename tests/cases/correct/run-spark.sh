# works on: gb10
docker run -it --gpus all -p 8000:8000 nvcr.io/nvidia/vllm:25.09-py3 vllm serve Qwen/Qwen2.5-Math-1.5B-Instruct --gpu-memory-utilization 0.7
