# works on: amd-usable, amd-mi300x
docker run --rm -it --cap-add=SYS_PTRACE --security-opt seccomp=unconfined --device=/dev/kfd --device=/dev/dri --group-add video --ipc=host --shm-size 256g --net host -v $volume:/data ghcr.io/huggingface/text-generation-inference:3.3.5-rocm --model-id $model
