"""Bytes of the weights on one rank, from whatever is known of them."""

from dataclasses import dataclass

from selfhost.plan.memory.figures import figure, table
from selfhost.plan.memory.pages import attention_ranks, heads_on_rank
from selfhost.plan.memory.question import Question, Weights
from selfhost.shapes.geometry import Geometry

PADDED = 256
"""MXFP4 kernels work on multiples of it: a width of 2880 is stored as 3072."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """`rank` bytes on the rank that holds most, and how they were found."""

    rank: int
    how: str
    margin: int = 0
    """How far off it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Parameters of the whole model by what becomes of them."""

    embedding: float
    """Of one matrix of the vocabulary; twice where input and output are not tied."""
    matrices: int
    layer_embeddings: float
    vision: float
    experts: float
    attention: float
    rest: float


def bytes_per_parameter(scheme: str) -> float:
    """Bytes of one quantized parameter with its scales."""
    schemes = table()["scheme"]
    row = schemes.get(scheme) or schemes["bf16"]
    return float(row["value"])


def weights_on_rank(question: Question) -> Sized:
    known = question.weights
    if known.resident is not None:
        return Sized(rank=known.resident, how="as the engine's log gave them")
    if known.by_rule is not None:
        return Sized(rank=known.by_rule, how="summed tensor by tensor")
    size = known.parameters or (known.checkpoint or 0) / bytes_per_parameter(known.published)
    if not size:
        return Sized(rank=0, how="unknown")
    parts = parts_of(question.geometry, size)
    rank = _divided(question, parts, known)
    if known.checkpoint and known.scheme == known.published:
        whole = sum(_bytes(known, parts).values())
        rank = int(rank * known.checkpoint / whole) if whole else rank
        return Sized(rank=rank + _second_copy(question), how="from the checkpoint's size")
    rank += _second_copy(question)
    packed = bytes_per_parameter(known.scheme) < 1
    return Sized(
        rank=rank,
        how="from the number of parameters",
        margin=int(rank * figure("weights_margin", "packed" if packed else "plain")),
    )


def parts_of(shape: Geometry, parameters: float) -> Parts:
    """What the shape says of the parameters; what is left are dense layers, or experts where there are some."""
    embedding = float(shape.vocab * shape.hidden)
    matrices = 1 if shape.tie else 2
    attention = _attention(shape)
    experts = (
        3.0 * shape.experts.layers * shape.experts.count * shape.experts.inter * shape.hidden if shape.experts else 0.0
    )
    vision = float(shape.vision if shape.vision > 1 else 0)
    left = parameters - embedding * matrices - shape.layer_embeddings - vision - attention - experts
    if left < 0:
        experts, attention, left = max(0.0, experts + left), attention if experts else max(0.0, attention + left), 0.0
    return Parts(
        embedding=embedding, matrices=matrices, layer_embeddings=float(shape.layer_embeddings), vision=vision,
        experts=experts, attention=attention, rest=left,
    )  # fmt: skip


def _attention(shape: Geometry) -> float:
    """Parameters of attention projections, recurrent layers apart."""
    width = shape.full_head_dim or shape.head_dim
    if shape.latent:
        latent = shape.latent
        query = (
            latent.q_rank * (shape.hidden + shape.heads * (latent.nope + latent.rope))
            if latent.q_rank
            else (shape.hidden * shape.heads * (latent.nope + latent.rope))
        )
        keys = shape.hidden * (latent.rank + latent.rope) + latent.rank * shape.heads * (latent.nope + latent.value)
        per_layer = query + keys + shape.heads * latent.value * shape.hidden
    else:
        per_layer = shape.hidden * width * (2 * shape.heads + 2 * shape.kv_heads)
    return float(per_layer * (shape.full_layers + shape.sliding_layers))


def _bytes(known: Weights, parts: Parts) -> dict[str, float]:
    """Bytes by part: what quantizers leave alone stays 16-bit."""
    each = bytes_per_parameter(known.scheme)
    plain = 4.0 if known.scheme == "fp32" else 2.0
    dense = plain if known.scheme == "mxfp4" else each  # MXFP4 checkpoints quantize the experts alone
    return {
        "embedding": parts.embedding * parts.matrices * plain,
        "layer_embeddings": parts.layer_embeddings * plain,
        "vision": parts.vision * plain,
        "experts": parts.experts * each,
        "attention": parts.attention * dense,
        "rest": parts.rest * dense,
    }


def _divided(question: Question, parts: Parts, known: Weights) -> int:
    spread, shape = question.spread, question.geometry
    ranks = spread.tensor
    expert_ranks = spread.tensor * spread.data if spread.expert else spread.tensor
    attention = attention_ranks(spread)
    size = _bytes(known, parts)
    size["experts"] *= expert_padding(shape) if known.scheme == "mxfp4" else 1.0
    layers = (
        size["experts"] / expert_ranks
        + size["attention"] / attention * _copies(shape, attention)
        + size["rest"] / attention
        + size["layer_embeddings"] / ranks
    )
    ends = size["embedding"] / ranks + size["vision"] / ranks
    if spread.pipeline > 1:  # each end holds one matrix of the vocabulary
        ends = (size["embedding"] / parts.matrices + size["vision"]) / ranks
    return int(layers / spread.pipeline + ends)


def _copies(shape: Geometry, ranks: int) -> float:
    """How much more than its share a rank holds when KV heads are copied, or a latent projection is whole."""
    if shape.latent or ranks == 1:
        return 1.0
    query, keys = 2 * shape.heads, 2 * shape.kv_heads
    return (query + heads_on_rank(shape.kv_heads, ranks) * ranks * 2) / (query + keys)


def expert_padding(shape: Geometry) -> float:
    return (-(-shape.hidden // PADDED) * PADDED) / shape.hidden


def _second_copy(question: Question) -> int:
    """Of W_UK and W_UV of latent attention, in 16 bit beside the projection (layers/attention/mla_attention.py)."""
    latent, shape = question.geometry.latent, question.geometry
    if latent is None or not latent.nope:
        return 0
    each = shape.heads * (latent.nope + latent.value) * latent.rank * 2
    return int(shape.full_layers * each / attention_ranks(question.spread) / question.spread.pipeline)
