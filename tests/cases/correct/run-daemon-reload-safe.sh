# form: https://github.com/NVIDIA/nvidia-container-toolkit/blob/main/README.md
docker run -d --gpus all --ipc=host \
  --device /dev/nvidiactl:/dev/nvidiactl --device /dev/nvidia-uvm:/dev/nvidia-uvm \
  --device /dev/nvidia-uvm-tools:/dev/nvidia-uvm-tools --device /dev/nvidia0:/dev/nvidia0 \
  vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
