docker --context rootless run i/a
docker -H unix:///run/user/1000/docker.sock run --tmpfs /dev/shm:rw,size=8g --mount type=tmpfs,dst=/tmp,tmpfs-size=64m i/a
docker --context lab container run -v models:/m:ro -v ./x:/x --mount type=bind,src=/a,target=/b,readonly i/a
nerdctl run --gpus all --net host --pid=host --restart unless-stopped --entrypoint "" -p 1:1 i/a sh -c 'vllm serve m'
