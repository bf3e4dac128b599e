# form: https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html
docker run --rm --net=host --ipc=host --privileged \
  --device /dev/dri:/dev/dri -v /dev/dri/by-path:/dev/dri/by-path \
  vllm/vllm-openai-xpu:v0.31.0 --model Qwen/Qwen3-8B
