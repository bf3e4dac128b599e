# works on: two-3090-nvml, eight-h100
docker run -d --rm --gpus all --net host --cap-add SYS_ADMIN nvcr.io/nvidia/k8s/dcgm-exporter:4.4.1 -f /etc/dcgm-exporter/dcp-metrics-included.csv
