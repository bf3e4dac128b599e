docker run --rm --ipc=host --device /dev/dri -v /dev/dri/by-path:/dev/dri/by-path vllm-xpu:v0.25.1 --model Qwen/Qwen3-8B -tp 2
