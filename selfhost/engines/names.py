"""How engines write their own names."""

NAMES = {"vllm": "vLLM", "sglang": "SGLang"}
