"""How engines write their own names."""

NAMES = {"vllm": "vLLM", "sglang": "SGLang"}


def shown(engine: str) -> str:
    """The name as its makers write it; an unknown one as it stands."""
    return NAMES.get(engine, engine)
