docker run --device /dev/kfd --device /dev/dri/renderD129 -e GPU_DEVICE_ORDINAL=1 \
  vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-8B
