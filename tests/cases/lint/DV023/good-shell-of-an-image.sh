# snapshot: arc-b60-pair
docker run -itd --net=host --device=/dev/dri --shm-size=16g --name=ipex intelanalytics/ipex-llm-serving-xpu:latest
