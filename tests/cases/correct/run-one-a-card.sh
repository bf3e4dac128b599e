# works on: two-3090-nvml
for i in 0 1; do
  docker run -d --gpus "device=$i" --name vllm-$i -p $((8000+i)):8000 vllm/vllm-openai:v0.31.0 --model Qwen/Qwen3-8B
done
