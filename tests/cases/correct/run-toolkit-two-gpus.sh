# form: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
docker run --gpus 2 --rm nvidia/cuda:12.8.1-base-ubuntu24.04 nvidia-smi
docker run --gpus all,capabilities=utility --rm nvidia/cuda:12.8.1-base-ubuntu24.04 nvidia-smi
