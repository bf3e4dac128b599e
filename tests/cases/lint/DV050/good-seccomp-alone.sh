docker run --device /dev/kfd --device /dev/dri --ipc=host --security-opt seccomp=unconfined \
  vllm/vllm-openai-rocm:v0.31.0 --model Qwen/Qwen3-32B --tensor-parallel-size 8
