# form: https://docs.vllm.ai/en/latest/cli/serve.html
#!/bin/sh
export CUDA_DEVICE_ORDER=PCI_BUS_ID
exec vllm serve Qwen/Qwen3-8B --max-model-len 16384 --gpu-memory-utilization 0.9 \
  --reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser hermes
