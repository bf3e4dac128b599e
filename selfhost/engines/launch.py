"""One server to start: what an engine module turns into arguments and environment."""

from dataclasses import dataclass

from selfhost.shapes.plan import Parallel, ReasoningPlan


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
    """Room for the KV cache where the engine does not measure it itself (CPU, unified memory); 0 leaves it to it."""
    backend: str
    """`cpu`, `cuda`, `rocm`, `xpu`."""
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
    parallel: Parallel | None = None
    """How the model is cut; None: tensor parallel over all devices."""
    gpu_memory_utilization: float | None = None
    """vLLM: share of the whole card that one instance may take. SGLang: share for weights and KV cache. None: its own
    default."""
    kv_cache_tokens: int = 0
    """SGLang, which takes no bytes: the size of the KV cache in tokens where it must not measure; 0 leaves it to it."""
    quantization_flags: tuple[str, ...] = ()
    """Further flags that belong to the precision, as words: `--linear-backend triton`."""
    version: str = ""
    """Of the engine, `0.33.0`; empty for the newest that is known."""
    media_domains: tuple[str, ...] = ()
    """Servers that media may be fetched from; empty leaves it to the engine, which asks any."""
    in_image: bool = False
    """For the entrypoint of the engine's own image instead of `python -m MODULE`."""

    @property
    def cut(self) -> Parallel:
        return self.parallel or Parallel(tensor=max(1, len(self.devices)))
