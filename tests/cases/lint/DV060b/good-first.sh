docker run --ipc=host --device /dev/dri -v /dev/dri/by-path:/dev/dri/by-path vllm/vllm-openai-xpu:v0.31.0 --model Qwen/Qwen3-32B -tp 2
