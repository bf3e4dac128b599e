podman run --rm --group-add keep-groups --device /dev/kfd --device /dev/dri/renderD128 docker.io/rocm/pytorch:rocm6.1_ubuntu22.04_py3.10 rocminfo
