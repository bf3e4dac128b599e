# works on: strix-halo
podman run -it --device /dev/dri --device /dev/kfd --group-add keep-groups --security-opt seccomp=unconfined --security-opt label=disable docker.io/kyuz0/amd-strix-halo-toolboxes:rocm-7.1 llama-server -m /m.gguf -ngl 999 --no-mmap
