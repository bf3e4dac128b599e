# form: https://docs.sglang.ai/get_started/install.html
docker run --gpus '"device=0,1"' --shm-size 32g -p 127.0.0.1:30000:30000 --ipc=host \
  lmsysorg/sglang:v0.5.23 sglang serve --model-path Qwen/Qwen3-32B --tp-size 2 --reasoning-parser qwen3 --tool-call-parser qwen25
