docker run --device /dev/kfd --device /dev/dri --group-add video rocm/rocm-terminal:6.4 rocminfo
