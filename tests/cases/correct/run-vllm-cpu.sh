# form: https://docs.vllm.ai/en/latest/getting_started/installation/cpu.html
docker run --rm --security-opt seccomp=unconfined --cap-add SYS_NICE --shm-size=4g -p 127.0.0.1:8000:8000 \
  -e VLLM_CPU_KVCACHE_SPACE=4 vllm/vllm-openai-cpu:v0.31.0-x86_64 --model Qwen/Qwen3-0.6B --dtype bfloat16
