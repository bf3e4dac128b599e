# works on: rtx-usable, two-3090-nvml, wsl2-rtx
docker run --gpus all -v /path/to/models:/models ghcr.io/ggml-org/llama.cpp:server-cuda -m /models/7B/x.gguf --port 8000 --host 0.0.0.0 -n 512 --n-gpu-layers 99
