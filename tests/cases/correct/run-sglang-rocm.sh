# form: https://docs.sglang.ai/platforms/amd_gpu.html
alias drun='docker run -it --rm --network=host --privileged --device=/dev/kfd --device=/dev/dri \
    --ipc=host --shm-size 16G --group-add video --cap-add=SYS_PTRACE \
    --security-opt seccomp=unconfined \
    -v $HOME/dockerx:/dockerx \
    -v /data:/data'
docker run -it --rm --network=host --privileged --device=/dev/kfd --device=/dev/dri --ipc=host --shm-size 16G \
    --group-add video --cap-add=SYS_PTRACE --security-opt seccomp=unconfined \
    lmsysorg/sglang:v0.5.23-rocm720-mi30x \
    python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --host 0.0.0.0 --port 30000
