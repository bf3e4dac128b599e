docker run --gpus 0 i/a
docker run --gpus=2 i/a
docker run --gpus '"device=0,1"' i/a
docker run --gpus device=0,1 i/a
docker run --gpus "device=0,1,2" i/a
docker run --gpus 'all,"capabilities=compute,utility"' i/a
docker run --gpus driver=nvidia,count=all i/a
docker run --gpus device=GPU-3f2e i/a
docker run --gpus driver=nvidia i/a
docker run --gpus $N i/a
