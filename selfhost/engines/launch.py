"""One server to start: what an engine module turns into arguments and environment."""

from dataclasses import dataclass

from selfhost.shapes.plan import ReasoningPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One server to start. Context in tokens, concurrency in requests, the KV cache in bytes."""

    model_path: str
    served_name: str
    address: str
    port: int
    context: int
    concurrency: int
    kv_cache_bytes: int
    """Room for the KV cache where the engine does not measure it itself (CPU); 0 leaves it to the engine."""
    backend: str
    """`cpu`, `cuda`."""
    weights_precision: str
    """`bf16`, `fp8`…, or `checkpoint`: as published."""
    kv_precision: str
    reasoning: ReasoningPlan
    tool_parser: str
    """Empty when the family has none."""
    devices: tuple[str, ...]
    """Stable ids of the accelerators; empty on the CPU."""
    trust_remote_code: bool
    extra: tuple[str, ...]
    """The user's own engine flags, in their order."""
    cores: float | None = None
    """Processor cores that this process may use, quota included; None when unknown."""
