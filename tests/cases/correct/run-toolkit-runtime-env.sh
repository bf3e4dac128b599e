# form: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
docker run --rm --runtime=nvidia \
    -e NVIDIA_VISIBLE_DEVICES=all \
    -e NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    nvidia/cuda:12.8.1-base-ubuntu24.04 nvidia-smi
