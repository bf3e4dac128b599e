"""What was asked for on the command line; everything optional but the model."""

from dataclasses import dataclass, field
from enum import StrEnum

from selfhost.shapes.cluster import ClusterAsk


class ReasoningMode(StrEnum):
    ON = "on"
    OFF = "off"
    BUDGET = "budget"
    EFFORT = "effort"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningAsk:
    """`--reasoning on|off|budget=N|effort=low|medium|high`. `budget_tokens` in tokens."""

    mode: ReasoningMode
    budget_tokens: int | None = None
    effort: str | None = None

    def __str__(self) -> str:
        if self.mode is ReasoningMode.BUDGET:
            return f"budget={self.budget_tokens}"
        if self.mode is ReasoningMode.EFFORT:
            return f"effort={self.effort}"
        return self.mode.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The load that a service is meant for. Lengths in tokens, latencies in seconds."""

    isl: int | None = None
    """Input sequence length."""
    osl: int | None = None
    """Output sequence length."""
    concurrency: int | None = None
    cache: str = ""
    """State of the prefix cache: `cold`, `warm`."""
    ttft_s: float | None = None
    """P(TTFT > ttft_s) ≤ ttft_share."""
    ttft_share: float | None = None
    tpot_s: float | None = None
    tpot_share: float | None = None
    price_per_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The request. None, and an empty model, mean: not asked, selfhost decides."""

    model: str
    name: str
    device: str | None = None
    """`cpu`, `auto`, or the index or uuid of an accelerator."""
    port: int | None = None
    context: int | None = None
    concurrency: int | None = None
    reasoning: ReasoningAsk | None = None
    precision: str | None = None
    kv_cache: str | None = None
    kv_skip_layers: tuple[str, ...] = ()
    """Layers whose KV cache stays as computed: numbers, or `sliding_window`."""
    engine: str | None = None
    """`vllm` or `vllm@0.32.0`."""
    trust_remote_code: bool = False
    allow_pickle: bool = False
    engine_args: tuple[str, ...] = ()
    """Everything behind `--` on the command line, passed on to the engine."""
    engine_env: dict[str, str] = field(default_factory=dict)
    """Variables that are passed on to the engine."""
    runtime: str | None = None
    """`process`, `docker`, `podman`, `quadlet`, `kubernetes`."""
    cluster: ClusterAsk | None = None
    image: str = ""
    """A container image instead of the engine's own, as `docker pull` takes it."""
    share: float | None = None
    """Share of each card's memory that this service may take, above 0 and up to 1; None is the engine's default."""
    media_domains: tuple[str, ...] = ()
    """Servers that a vision model may fetch images from; none asked means that none is asked."""
    context_ceiling: int | None = None
    """Tokens that the system may add to a request."""
    envelope: Envelope | None = None
    origins: dict[str, str] = field(default_factory=dict)
    """Where each value came from, as typed: `--port 8001`."""
