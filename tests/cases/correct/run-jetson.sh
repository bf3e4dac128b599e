# form: https://github.com/dusty-nv/jetson-containers
docker run --runtime nvidia -it --rm --network=host --ipc=host dustynv/vllm:r36.4.0 vllm serve Qwen/Qwen3-4B
