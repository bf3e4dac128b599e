podman run -it --user 1000:1000 --group-add render --device /dev/kfd --device /dev/dri docker.io/kyuz0/vllm-therock-gfx1151:latest vllm serve Qwen/Qwen3-8B
