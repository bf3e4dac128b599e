# snapshot: amd-card-and-integrated
docker run -d --device /dev/kfd --device /dev/dri -p 5000:5000 rocm/device-metrics-exporter:v1.4.0
