docker run --ipc=host --device /dev/kfd --device /dev/dri \
  vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-32B --tensor-parallel-size 2
