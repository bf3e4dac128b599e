docker run --gpus all -p 8080:80 ghcr.io/huggingface/text-generation-inference:3.3.5 \
  --model-id Qwen/Qwen3-8B --num-shard 2
