"""Launches that the engine tests share."""

from typing import Any

from selfhost.engines.launch import Launch
from selfhost.shapes.plan import ReasoningPlan
from selfhost.shapes.service import ReasoningMode

OFF = ReasoningPlan(mode=ReasoningMode.OFF)
SWITCHED_OFF = ReasoningPlan(
    mode=ReasoningMode.OFF, parser="qwen3", template_defaults={"thinking": False, "enable_thinking": False}
)


def launch(**changes: Any) -> Launch:
    """A small model on the CPU, with `changes`."""
    values: dict[str, Any] = {
        "model_path": "/models/smollm2",
        "served_name": "smollm2",
        "address": "127.0.0.1",
        "port": 8000,
        "context": 2048,
        "concurrency": 4,
        "kv_cache_bytes": 500_000_000,
        "backend": "cpu",
        "weights_precision": "bf16",
        "kv_precision": "auto",
        "reasoning": OFF,
        "tool_parser": "",
        "devices": (),
        "trust_remote_code": False,
        "extra": (),
    }
    return Launch(**{**values, **changes})


CARD = {"backend": "cuda", "devices": ("GPU-6f1e",), "kv_cache_bytes": 0}
