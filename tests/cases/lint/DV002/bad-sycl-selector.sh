docker run --device /dev/dri/renderD129 -e ONEAPI_DEVICE_SELECTOR=level_zero:1 \
  vllm/vllm-openai-xpu:v0.31.0 --model Qwen/Qwen3-8B
