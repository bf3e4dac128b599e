sudo podman run -d --device nvidia.com/gpu=0 --device nvidia.com/gpu=GPU-8a2f --security-opt=label=disable --userns=keep-id docker.io/vllm/vllm-openai@sha256:0123 serve
podman --runtime crun run --device /dev/dri --annotation run.oci.keep_original_groups=1 --shm-size=1.5g ghcr.io/x/y:1
podman run --privileged=false --cap-drop all --user 1000:1000 -eA=1 -e B -e C=$C -e D="$OTHER" x/y
