docker run --device /dev/nvidia0 --device /dev/nvidiactl --device /dev/nvidia-uvm ghcr.io/ggml-org/llama.cpp:server-cuda -m /m.gguf
docker run --gpus all --device /dev/nvidiactl --device /dev/nvidia0 ghcr.io/ggml-org/llama.cpp:server-cuda -m /m.gguf
