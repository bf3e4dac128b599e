"""Shape of a network, as far as its memory and its speed follow from it. Widths in elements, never in bytes."""

from dataclasses import dataclass
from enum import StrEnum


class Window(StrEnum):
    """How a windowed layer looks back."""

    SLIDING = "sliding"
    """At the last `window` tokens."""
    CHUNKED = "chunked"
    """Inside its chunk of `window` tokens (Llama 4)."""


class Recurrence(StrEnum):
    """What a layer with a fixed-size state is."""

    GDN = "gdn"
    """Gated DeltaNet (Qwen3-Next, Qwen3.5)."""
    KDA = "kda"
    """Kimi Delta Attention."""
    MAMBA2 = "mamba2"
    MAMBA1 = "mamba1"
    CONV = "conv"
    """A short convolution alone (LFM2)."""
    LIGHTNING = "lightning"
    """Linear attention with a plain K×V state (MiniMax-Text-01)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: one compressed vector of `rank + rope` a token and layer, shared by all heads."""

    rank: int
    """kv_lora_rank."""
    rope: int
    """qk_rope_head_dim."""
    nope: int = 0
    """qk_nope_head_dim, per head."""
    value: int = 0
    """v_head_dim, per head."""
    q_rank: int = 0
    """q_lora_rank; 0 where the query is not compressed."""
    indexer_bytes: int = 0
    """Bytes a token and layer of a sparse-attention indexer's own cache (DSA: 132); 0 where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The fixed-size state of one recurrent layer, for one sequence, before any division over devices.

    GDN and KDA: `heads` are value heads of `head_dim`, `key_heads` key heads of `state`. Mamba-2: `heads` of
    `head_dim`, `groups` of `state`. A short convolution has `heads` = 0 and `head_dim` = its width.
    """

    kind: Recurrence
    heads: int
    head_dim: int
    state: int = 0
    key_heads: int = 0
    groups: int = 0
    kernel: int = 4
    """Width of the short convolution in tokens; it keeps `kernel - 1` of them."""
    ssm_bytes: int = 4
    """Bytes of one element of the recurrent part as the engine keeps it (mamba_ssm_cache_dtype); 2 for Qwen3-Next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture of experts. `inter` is one expert's intermediate size."""

    count: int
    top_k: int
    inter: int
    shared_inter: int = 0
    """All shared experts of a layer together."""
    layers: int = 0
    """Sparse layers; the others are dense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Layers by the kind of cache they own; a layer that borrows the cache of another one is counted in `layers` only.

    `kv_heads` and `head_dim` are those of the windowed layers where full ones differ (`full_kv_heads`,
    `full_head_dim`). With `latent`, `kv_heads` is 1 and `head_dim` is `rank + rope`.
    """

    layers: int
    full_layers: int
    sliding_layers: int = 0
    linear_layers: int = 0
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    v_head_dim: int = 0
    """Of the values, where it differs from the keys' `head_dim`; 0 is the same."""
    window: int = 0
    """Tokens; 0 where no layer is windowed or nobody said."""
    window_kind: Window = Window.SLIDING
    full_kv_heads: int = 0
    full_head_dim: int = 0
    latent: Latent | None = None
    state: State | None = None
    experts: Experts | None = None
    intermediate: int = 0
    """Of the dense MLP; 0 when unknown."""
    tie: bool = False
    """Input embedding and output head are one matrix."""
    layer_embeddings: int = 0
    """Elements of per-layer input embeddings (Gemma 3n and 4 E models), which stay 16-bit in quantized checkpoints."""
    vision: int = 0
    """Parameters of vision and audio towers; 1 when there are some of unknown number."""
    mtp_layers: int = 0
    """Layers of a multi-token-prediction head in the checkpoint; loaded only for speculation."""
    mm_profile_bytes: int = 0
    """What the engine's dummy multimodal run adds to the peak, where that was seen."""
    exact: bool = True
    """False when the architecture was computed as the nearest generic form."""
    note: str = ""
    """Why it is not exact, in a clause."""
