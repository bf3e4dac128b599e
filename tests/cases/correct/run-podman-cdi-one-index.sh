# form: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
podman run --rm --device nvidia.com/gpu=0 --security-opt=label=disable ubuntu nvidia-smi -L
