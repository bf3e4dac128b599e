# form: https://github.com/intel/llm-scaler
sudo docker run -td --privileged --net=host --device=/dev/dri --name=lsv-container \
  -v /home/intel/LLM:/llm/models/ -e no_proxy=localhost,127.0.0.1 \
  -v /dev/dri/by-path:/dev/dri/by-path --shm-size="32g" --entrypoint /bin/bash \
  intel/llm-scaler-vllm:0.14.0-b8.3.1
