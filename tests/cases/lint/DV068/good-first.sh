# snapshot: arc-b60-pair
docker run --ipc=host --device /dev/dri -v /dev/dri/by-path:/dev/dri/by-path -e CCL_ALLREDUCE=ring vllm/vllm-openai-xpu:v0.33.0 --model Qwen/Qwen3-32B -tp 2
