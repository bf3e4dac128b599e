docker run --rm --device /dev/kfd --device /dev/dri --group-add video rocm/rocm-terminal rocminfo
