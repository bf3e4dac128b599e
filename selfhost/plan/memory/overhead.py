"""What vLLM takes beside weights and KV cache: the peak of its dummy run, its libraries, and graphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from selfhost.plan.memory.batch import batch_tokens, max_seqs
from selfhost.plan.memory.figures import figure, table
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release, numbers
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.units import GIB

GRAPHS_SUBTRACTED_SINCE: Release = (0, 21)
"""`CUDA graph memory profiling is enabled (default since v0.21.0)`: before, graphs came on top of the KV cache."""
MOST_CAPTURED = 512
"""The largest batch that a graph is captured for (config/vllm.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    activation_peak: int
    non_torch: int
    graphs: int
    """Of all graphs; whether the KV cache pays for them is the version's matter."""
    subtracted: bool
    warm_up: int = 0
    """Of kernels that the dummy run leaves out."""

    @property
    def after_cache(self) -> int:
        return 0 if self.subtracted else self.graphs + self.warm_up

    @property
    def before_cache(self) -> int:
        return self.activation_peak + self.non_torch + (self.graphs if self.subtracted else 0)


def overhead(question: Question, version: Release, *, last_stage: bool = True) -> Overhead:
    return Overhead(
        activation_peak=activation_peak(question, version, last_stage=last_stage),
        non_torch=non_torch(question, version, last_stage=last_stage),
        graphs=graphs(question),
        subtracted=version >= GRAPHS_SUBTRACTED_SINCE,
        warm_up=int(figure("warm_up", "mxfp4_gib") * GIB) if question.weights.scheme == "mxfp4" else 0,
    )


def activation_peak(question: Question, version: Release, *, last_stage: bool = True) -> int:
    """The sampler's dummy run over the whole vocabulary on every rank, or the MLP's where the vocabulary is small."""
    shape = question.geometry
    tokens, rows = batch_tokens(question, version), min(max_seqs(question, version), batch_tokens(question, version))
    token = tokens * 2
    sampler = rows * shape.vocab * _logit_bytes(version) + figure("activation", "token_widths") * token * shape.hidden
    mlp = _mlp(shape, token, question.spread.tensor)
    peak = max(sampler if last_stage else 0.0, mlp) + figure("activation", "fixed_gib") * GIB
    return int(peak + _experts(question, token) + _images(question))


def _logit_bytes(version: Release) -> float:
    value: float = next(row["value"] for row in _rows("logit", version))
    return value


def _mlp(shape: Geometry, token: int, ranks: int) -> float:
    inter = shape.intermediate if not shape.experts else shape.experts.shared_inter
    widths = figure("activation", "mlp_inter") * inter / ranks + figure("activation", "mlp_hidden") * shape.hidden
    return token * widths


def _experts(question: Question, token: int) -> float:
    """The workspace of routed experts; MXFP4 kernels have none of that size."""
    experts = question.geometry.experts
    if experts is None or question.weights.scheme == "mxfp4":
        return 0.0
    ranks = 1 if question.spread.expert else question.spread.tensor
    widths = figure("activation", "expert_hidden") * question.geometry.hidden
    widths += figure("activation", "expert_inter") * experts.inter / ranks
    return token * experts.top_k * widths


def _images(question: Question) -> float:
    shape = question.geometry
    if not shape.vision or not question.multimodal:
        return 0.0
    return max(figure("activation", "image_gib") * GIB, float(shape.mm_profile_bytes))


def non_torch(question: Question, version: Release, *, last_stage: bool = True) -> int:
    """The context, libraries and communication buffers of one rank."""
    if question.spread.pipeline > 1 and not last_stage:
        return int(figure("non_torch_stage", "gib") * GIB)
    room = question.room
    several = question.spread.tensor > 1
    found = next(
        row["value"]
        for row in _rows("non_torch", version)
        if row["several"] == several
        and row.get("linked", room.linked) == room.linked
        and room.total < row.get("below_gib", room.total / GIB + 1) * GIB
    )
    return int((found + (figure("unified", "gib") if room.unified else 0.0)) * GIB)


def graphs(question: Question) -> int:
    """CUDA or HIP graphs of one rank at the usual list of batch sizes."""
    if question.eager or question.backend == "cpu":
        return 0
    shape = question.geometry
    seqs = max_seqs(question, (99,))
    captured = min(1.0, (2 * seqs + 16) / MOST_CAPTURED)
    kind = "recurrent_layer_gib" if shape.linear_layers else "experts_layer_gib" if shape.experts else "layer_gib"
    per_layer = figure("graphs", kind)
    return int(per_layer * GIB * shape.layers / question.spread.pipeline * captured)


def _rows(name: str, version: Release) -> Iterator[dict[str, Any]]:
    """Rows that hold for a version, by their `since` and `before`."""
    for row in table()[name]:
        if version >= numbers(row.get("since", "0")) and ("before" not in row or version < numbers(row["before"])):
            yield row
