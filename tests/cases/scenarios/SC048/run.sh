docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=none nvidia/cuda:12.8.1-base-ubuntu24.04 nvidia-smi
