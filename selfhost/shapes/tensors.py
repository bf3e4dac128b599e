"""The tensors of a checkpoint, summed by what happens to them on a device. Sizes in bytes as stored."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a tensor is for, which decides how engines divide it."""

    EMBEDDING = "embedding"
    LAYER_EMBEDDING = "layer embedding"
    """Per-layer inputs (Gemma 3n and 4 E models)."""
    HEAD = "head"
    NORM = "norm"
    ROUTER = "router"
    QUERY = "query"
    KEY_VALUE = "key and value"
    QKV = "query, key and value"
    """In one tensor."""
    OUTPUT = "output"
    DOWN = "compressing"
    """MLA: into the compressed vector, whole on every device."""
    UP = "expanding"
    """MLA: out of it, by heads."""
    INDEXER = "indexer"
    MLP = "mlp"
    EXPERT = "expert"
    RECURRENT = "recurrent"
    VISION = "vision and audio"
    DRAFT = "draft"
    """A multi-token-prediction head."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """All tensors of one kind and type in one layer."""

    kind: Kind
    layer: int
    """-1 outside the layers."""
    dtype: str
    """As safetensors spells it: BF16, F8_E4M3, U8."""
    scale: bool
    """Scales, zero points and the like, beside packed weights."""
    bytes: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensors:
    """A whole checkpoint."""

    parts: tuple[Part, ...]
    files: int

    @property
    def total(self) -> int:
        return sum(part.bytes for part in self.parts)
