"""What one token, or one sequence's state, takes in one layer on one rank."""

from dataclasses import dataclass

from selfhost.plan.memory.figures import table
from selfhost.plan.memory.question import Question, Spread
from selfhost.shapes.geometry import Geometry, Recurrence, State

WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4}
"""Bytes of an activation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How keys and values are stored."""

    value_bytes: float
    head_bytes: int = 0
    """Scales of one head and token, keys and values together."""
    latent_bytes: int = 0
    """A packed latent vector of one token and layer; 0 where its width counts."""
    edge_layers: int = 0
    """Layers at each end of a model without recurrent ones that stay 16-bit."""
    known: bool = True


def form_of(kv: str, computed: str) -> Form:
    """`auto` is the width of the activations."""
    name = kv.lower() or "auto"
    if name in ("auto", "none"):
        return Form(value_bytes=WIDTH.get(computed, 2))
    row = table()["kv_form"].get(name)
    if row is None:
        return Form(value_bytes=WIDTH.get(computed, 2), known=False)
    return Form(**{name: value for name, value in row.items() if name != "source"})


def heads_on_rank(kv_heads: int, ranks: int) -> int:
    """KV heads of one rank: divided, and copied when there are fewer of them than ranks."""
    return max(1, kv_heads // ranks)


def attention_ranks(spread: Spread) -> int:
    """Over how many ranks the heads are cut: fewer than `tensor` with DP attention."""
    return max(1, spread.tensor // spread.attention_data)


def full_cell(question: Question) -> int:
    """Bytes of one token in one layer that looks back at everything."""
    shape = question.geometry
    heads, width = shape.full_kv_heads or shape.kv_heads, shape.full_head_dim or shape.head_dim
    return cell(question, form_of(question.kv, question.computed), heads=heads, width=width)


def window_cell(question: Question) -> int:
    """The same of a windowed layer."""
    shape = question.geometry
    return cell(
        question, form_of(question.kv, question.computed), heads=shape.kv_heads, width=shape.head_dim, windowed=True
    )


def cell(question: Question, form: Form, *, heads: int, width: int, windowed: bool = False) -> int:
    """Keys and values of one token in one layer on one rank; a latent vector is whole on every rank."""
    shape = question.geometry
    if shape.latent is not None and not windowed:
        if form.latent_bytes and (shape.latent.indexer_bytes or "ds_mla" in question.kv):
            return form.latent_bytes
        return int((shape.latent.rank + shape.latent.rope) * form.value_bytes)
    on_rank = heads_on_rank(heads, attention_ranks(question.spread))
    values = width if not shape.v_head_dim or shape.full_head_dim else shape.v_head_dim
    return int(on_rank * (width + values) * form.value_bytes) + on_rank * form.head_bytes


def indexer_cell(shape: Geometry) -> int:
    """The cache of a sparse-attention indexer, one token and layer; whole on every rank."""
    return shape.latent.indexer_bytes if shape.latent else 0


def state_bytes(state: State, *, ranks: int, spec_tokens: int = 0, width: int = 2, ssm_bytes: int = 0) -> int:
    """The state of one recurrent layer for one sequence on one rank (vLLM 0.33.0, layers/mamba/mamba_utils.py).

    `width` is that of the convolution's part, `ssm_bytes` that of the recurrent part where the engine differs from
    the model's own.
    """
    kept = state.kernel - 1 + spec_tokens
    channels = _channels(state, ranks)
    return channels // ranks * kept * width + _recurrent(state, ranks) * (ssm_bytes or state.ssm_bytes)


def _channels(state: State, ranks: int) -> int:
    """Channels of the short convolution, of all ranks."""
    inner = state.heads * state.head_dim
    if state.kind is Recurrence.CONV:
        return state.head_dim
    if state.kind is Recurrence.LIGHTNING:
        return 0
    if state.kind is Recurrence.MAMBA1:
        return inner
    if state.kind is Recurrence.MAMBA2:
        groups = state.groups if state.groups % ranks == 0 else ranks  # copied so that every rank has one
        return inner + 2 * groups * state.state
    return inner + 2 * state.key_heads * state.state


def _recurrent(state: State, ranks: int) -> int:
    """Elements of the recurrent part on one rank."""
    if state.kind is Recurrence.CONV:
        return 0
    other = state.head_dim if state.kind in (Recurrence.KDA, Recurrence.LIGHTNING) else state.state
    return state.heads // ranks * state.head_dim * other
