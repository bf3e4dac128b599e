"""Bytes of one device, tensor by tensor: what is divided, what is whole everywhere, what grows while loading.

Rules: vLLM 0.33.0: vllm/model_executor/layers/linear.py, vocab_parallel_embedding.py, mla_attention.py;
vllm/distributed/utils.py, get_pp_indices.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.shapes.geometry import Geometry
from selfhost.shapes.precision import PLAIN
from selfhost.shapes.tensors import Kind, Part, Tensors

_VOCAB_STEP = 64
"""The vocabulary is padded to a multiple of it."""
_MXFP4_STEP = 256
"""Hidden sizes of MXFP4 experts are padded to a multiple of it: 2,880 becomes 3,072 (gpt-oss)."""
_PLAIN_BYTES = {"F32": 4.0, "BF16": 2.0, "F16": 2.0}
_WHOLE = {Kind.NORM, Kind.ROUTER, Kind.DOWN, Kind.INDEXER, Kind.OTHER}
_VOCAB = {Kind.EMBEDDING, Kind.HEAD, Kind.LAYER_EMBEDDING}
_QUANTIZED = {
    Kind.QUERY, Kind.KEY_VALUE, Kind.QKV, Kind.OUTPUT, Kind.DOWN, Kind.UP, Kind.MLP, Kind.EXPERT, Kind.RECURRENT,
}  # fmt: skip
"""What an engine rounds to FP8 while it loads a 16-bit checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a replica is cut, and what is loaded. `data` replicas divide their experts when `expert` is set."""

    tp: int = 1
    pp: int = 1
    data: int = 1
    expert: bool = False
    scheme: str = ""
    """As served; `fp8` of a 16-bit checkpoint means rounded while loading."""
    computed: str = "bf16"
    draft: bool = False
    multimodal: bool = True
    vision_whole: bool = False
    """Towers whole on every device (vLLM --mm-encoder-tp-mode data)."""


def per_rank(tensors: Tensors, geometry: Geometry, cut: Cut) -> int:
    """Bytes of weights on the fullest device, without what its allocator rounds up."""
    return max(_stage(tensors, geometry, cut, number) for number in range(cut.pp))


def stages(layers: int, pp: int) -> tuple[range, ...]:
    """Layers of each pipeline stage; what does not divide goes to the stages before the last."""
    counts = [layers // pp] * pp
    for place in range(2, layers % pp + 2):
        counts[-place] += 1
    starts = [sum(counts[:place]) for place in range(pp)]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))


def _stage(tensors: Tensors, geometry: Geometry, cut: Cut, number: int) -> int:
    layers = stages(geometry.layers, cut.pp)[number]
    parts = _loaded(tensors, geometry, cut)
    total = sum(
        _share(part, geometry, cut) * _growth(part, geometry, cut) * part.bytes
        for part in parts
        if _is_here(part, geometry, layers, first=number == 0, last=number == cut.pp - 1)
    )
    return round(total + _second_copy(geometry, cut, len(layers)))


def _loaded(tensors: Tensors, geometry: Geometry, cut: Cut) -> Iterator[Part]:
    has_embedding = any(part.kind is Kind.EMBEDDING for part in tensors.parts)
    for part in tensors.parts:
        is_draft = part.kind is Kind.DRAFT or part.layer >= geometry.layers
        tied = part.kind is Kind.HEAD and geometry.tie and has_embedding
        away = (is_draft and not cut.draft) or (part.kind is Kind.VISION and not cut.multimodal)
        if not tied and not away:
            yield part


def _is_here(part: Part, geometry: Geometry, layers: range, *, first: bool, last: bool) -> bool:
    if part.kind is Kind.DRAFT or part.layer >= geometry.layers:
        return last
    if part.layer >= 0:
        return part.layer in layers
    if part.kind is Kind.EMBEDDING:
        return first or (last and geometry.tie)
    return {Kind.LAYER_EMBEDDING: first, Kind.HEAD: last}.get(part.kind, True)


def _share(part: Part, geometry: Geometry, cut: Cut) -> float:
    """What of it one device holds."""
    if part.kind in _WHOLE or (part.kind is Kind.VISION and cut.vision_whole):
        return 1.0
    if part.kind in _VOCAB:
        padded = -(-geometry.vocab // _VOCAB_STEP) * _VOCAB_STEP
        return padded / geometry.vocab / cut.tp
    if part.kind is Kind.EXPERT and cut.expert:
        return 1 / (cut.tp * cut.data)
    kept = max(1, geometry.kv_heads // cut.tp) / max(1, geometry.kv_heads)
    if part.kind is Kind.KEY_VALUE and geometry.latent is None:
        return kept
    if part.kind is Kind.QKV:
        both = geometry.heads + 2 * geometry.kv_heads
        return (geometry.heads / cut.tp + 2 * geometry.kv_heads * kept) / max(1, both)
    return 1 / cut.tp


def _growth(part: Part, geometry: Geometry, cut: Cut) -> float:
    """What its bytes become in memory."""
    stored = _PLAIN_BYTES.get(part.dtype)
    if part.kind is Kind.EXPERT and cut.scheme == "mxfp4" and stored is None:
        return -(-geometry.hidden // _MXFP4_STEP) * _MXFP4_STEP / geometry.hidden
    if stored is None or part.scale:
        return 1.0
    if cut.scheme in ("fp8", "fp8_block") and part.kind in _QUANTIZED:
        return 1.0 / stored
    return PLAIN.get(cut.computed, PLAIN["bf16"]) / stored


def _second_copy(geometry: Geometry, cut: Cut, layers: int) -> float:
    """MLA keeps the expanding matrices once more, absorbed into query and output, in 16 bits."""
    if geometry.latent is None:
        return 0.0
    latent = geometry.latent
    attention = layers * geometry.full_layers / geometry.layers
    return attention * geometry.heads * (latent.nope + latent.value) * latent.rank * PLAIN["bf16"] / cut.tp
