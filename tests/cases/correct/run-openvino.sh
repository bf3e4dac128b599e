# works on: arc-b60-pair, igpu-only
docker run -d --rm --device /dev/dri --group-add=$(stat -c "%g" /dev/dri/render* | head -n 1) -u $(id -u):$(id -g) -p 8000:8000 -v $(pwd)/models:/models openvino/model_server:latest-gpu --source_model OpenVINO/Qwen3-8B-int4-ov --target_device GPU
