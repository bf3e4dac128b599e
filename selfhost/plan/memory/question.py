"""What the memory arithmetic is asked, and what it answers. Sizes in bytes per rank unless a name says otherwise."""

from dataclasses import dataclass, field

from selfhost.shapes.geometry import Geometry
from selfhost.shapes.plan import Parallel as Spread
from selfhost.shapes.plan import Verdict

__all__ = ["Answer", "Gap", "Question", "Room", "Spread", "Weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The memory that one rank may use."""

    name: str
    """`NVIDIA GeForce RTX 4090`, `memory of this machine`."""
    total: int
    """As the driver reports it, never the marketing size."""
    free: int | None = None
    """Before the engine starts; None when nobody looked (a card that one does not own): then it is taken as empty."""
    arch: str = ""
    """`sm_89`, `gfx942`, `bmg`; empty on the CPU."""
    unified: bool = False
    """The machine's own memory: the host keeps a reserve (memory.toml)."""
    linked: bool = False
    """The ranks are joined by NVLink, NVSwitch or XGMI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What is known of the weights; the first that is known counts, in this order."""

    resident: int | None = None
    """Seen on one rank, as the engine's log gave it."""
    checkpoint: int | None = None
    """Bytes of all tensors by the safetensors headers, whole model."""
    by_rule: int | None = None
    """Bytes of one rank, summed tensor by tensor with the TP and repack rules (models/weights)."""
    parameters: float | None = None
    """Number of parameters (not billions)."""
    scheme: str = "bf16"
    """As served: bf16, fp16, fp32, fp8 (per channel or tensor), fp8_block, int8, int4, awq, gptq, nvfp4, mxfp4."""
    published: str = "bf16"
    """As stored in the checkpoint; where it differs from `scheme` the engine converts while loading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One start of one engine. None means: not said, the engine's own default for this version and card counts."""

    engine: str
    version: str
    """As written, `0.33.0`, `0.5.23`; unknown or odd ones are read as far as they go."""
    backend: str
    """cuda, rocm, xpu, cpu."""
    geometry: Geometry
    weights: Weights
    room: Room
    spread: Spread = field(default_factory=Spread)
    kv: str = "auto"
    """As the engine spells it: auto, bf16, fp8, fp8_e4m3, fp8_e5m2, fp8_per_token_head, int8_per_token_head, nvfp4…"""
    computed: str = "bf16"
    """Activations: bf16, fp16, fp32; what `auto` means for the KV cache."""
    kv_skip_layers: tuple[str, ...] = ()
    context: int | None = None
    """max_model_len; None leaves the largest that fits to the answer (with `native` as its ceiling)."""
    native: int | None = None
    utilization: float | None = None
    """vLLM: share of the whole card. SGLang: mem_fraction_static."""
    kv_bytes: int | None = None
    """An explicit size of the KV cache (`--kv-cache-memory-bytes`)."""
    max_seqs: int | None = None
    batch_tokens: int | None = None
    """vLLM max_num_batched_tokens; SGLang chunked_prefill_size."""
    block_size: int | None = None
    eager: bool = False
    spec_tokens: int = 0
    draft_layers: int = 0
    """Layers of a draft or MTP head that keep a KV cache of their own."""
    prefix_caching: bool | None = None
    multimodal: bool = True
    """Image and audio inputs are allowed, where the model has them."""
    mamba_slots: int | None = None
    """SGLang --max-mamba-cache-size."""
    llm_class: bool = False
    """Started by vLLM's LLM class, whose batch defaults differ from the server's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One reason why a token costs more than its raw bytes, as a share of them: 0.0718 for `state pages`."""

    name: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the engine will do, as far as its code and the measured runs tell."""

    verdict: Verdict
    why: str
    """Of the verdict, in one clause."""
    margin: int
    """How far off `kv_available` may be; inside it the verdict is `too close to call`."""
    requested: int
    """What the engine plans with (share of the card, or the explicit size)."""
    weights: int
    activation_peak: int
    non_torch: int
    graphs: int
    """CUDA or HIP graphs as far as this version subtracts them before it sizes the KV cache; else 0."""
    graphs_after: int = 0
    """Taken behind the KV cache's back."""
    kv_available: int
    """May be negative: the weights alone are too much."""
    kv_needed: int | None
    """For one request at full context; None when no context was given and none fits."""
    context: int | None
    """The one asked for, or the largest that fits."""
    longest: int
    """The largest context of one request that fits, not above `native`; 0 when none does."""
    kv_tokens: int
    """As the engine prints it (vLLM from 0.21 on: concurrency × context)."""
    concurrency: float
    """Requests at full context, as the engine prints it."""
    blocks: int = 0
    block_tokens: int = 0
    raw_bytes_per_token: float
    effective_bytes_per_token: float
    """kv_available / kv_tokens."""
    gaps: tuple[Gap, ...] = ()
    state_bytes: int = 0
    """Fixed-size states of recurrent layers for one sequence."""
    exact_kv: bool = True
    """The arithmetic from KV bytes to tokens is the engine's own; False for an estimate."""
    measured_runs: int = 0
    """Public or own runs of this engine on this architecture that the overhead rests on."""
    notes: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
