# host: docker-28
docker run --rm --gpus=all nvidia/cuda:12.8.1-base-ubuntu24.04 nvidia-smi
