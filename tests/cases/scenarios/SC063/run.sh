docker run --rm --ipc=host --device /dev/dri -v /dev/dri/by-path:/dev/dri/by-path vllm/vllm-openai-xpu:v0.33.0 --model Qwen/Qwen3-32B --tensor-parallel-size 2
