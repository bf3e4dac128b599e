"""Whether a network can be cut into tensor-parallel parts: heads, vocabulary, experts, and blocks of FP8 scales."""

import math
from dataclasses import dataclass

from selfhost.plan.fp8 import Form, Native
from selfhost.plan.precision_form import Precision
from selfhost.shapes.geometry import Geometry

BLOCK = 128
"""Side of the squares that share one scale in block FP8."""
VOCABULARY_PAD = 64
"""Both engines fill the vocabulary up to a multiple of it (layers/vocab_parallel_embedding.py)."""
REFINED = 32
"""Smallest square into which vLLM 0.33 refines the scales of experts (layers/fused_moe/oracle/fp8.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What stands against a cut in `tensor` parts; empty where nothing does."""

    dense: str = ""
    """Against cutting attention, MLP and vocabulary: no way around it."""
    experts: str = ""
    """Against cutting each expert: whole experts on each rank are the way out."""
    note: str = ""

    @property
    def possible(self) -> bool:
        return not self.dense and not self.experts


def cut(shape: Geometry, tensor: int, *, engine: str, precision: Precision) -> Cut:
    """The first obstacle of each kind, as a clause."""
    if tensor == 1:
        return Cut()
    blocks = precision.scheme == "fp8_block" or precision.form is Form.BLOCK
    dense = _heads(shape, tensor) or _widths(shape, tensor, engine) or (_dense_blocks(shape, tensor) if blocks else "")
    experts, note = _experts(shape, tensor, engine=engine, blocks=blocks, native=precision.native)
    return Cut(dense=dense, experts=experts, note=note)


def divides_experts(shape: Geometry, ranks: int, *, engine: str) -> bool:
    """Whether whole experts can be dealt out; vLLM gives the first ranks one more where they do not come out even."""
    if shape.experts is None:
        return False
    return engine == "vllm" or shape.experts.count % ranks == 0


def _heads(shape: Geometry, tensor: int) -> str:
    if shape.heads % tensor:
        return f"{shape.heads} attention heads are not divided by {tensor}"
    for name, count in (("KV heads", shape.kv_heads), ("KV heads of full layers", shape.full_kv_heads)):
        if shape.latent is None and count and count % tensor and tensor % count:
            return f"{count} {name} are neither divided by {tensor} nor do they divide it"
    state = shape.state
    if state is not None:
        for name, count in (("heads", state.heads), ("key heads", state.key_heads)):
            if count and count % tensor:
                return f"{count} {name} of the recurrent layers are not divided by {tensor}"
    return ""


def _widths(shape: Geometry, tensor: int, engine: str) -> str:
    padded = math.ceil(shape.vocab / VOCABULARY_PAD) * VOCABULARY_PAD
    if engine == "vllm" and padded % tensor:  # SGLang pads further
        return f"a vocabulary of {padded:,} (padded) is not divided by {tensor}"
    if shape.intermediate % tensor:
        return f"the MLP's {shape.intermediate:,} are not divided by {tensor}"
    if shape.experts is not None and shape.experts.shared_inter % tensor:
        return f"the shared expert's {shape.experts.shared_inter:,} are not divided by {tensor}"
    return ""


def _dense_blocks(shape: Geometry, tensor: int) -> str:
    """Every width that is cut must stay a multiple of the block: outputs of column, inputs of row parallel layers."""
    if shape.latent is not None:
        widths = {"attention output": shape.heads * shape.latent.value}
    else:
        width = shape.head_dim
        widths = {"queries": shape.heads * width, "keys": max(shape.kv_heads, tensor) * width}
    if shape.intermediate:
        widths["MLP"] = shape.intermediate
    for name, size in widths.items():
        if size // tensor % BLOCK:
            return f"FP8 blocks of {BLOCK}: the {name}, {size:,} / {tensor} = {size // tensor:,}, is no multiple"
    return ""


def _experts(
    shape: Geometry, tensor: int, *, engine: str, blocks: bool, native: Native
) -> tuple[str, str]:  # fmt: skip
    if shape.experts is None or not shape.experts.inter:
        return "", ""
    inter = shape.experts.inter
    if inter % tensor:
        return f"an expert's {inter:,} are not divided by {tensor}", ""
    part = inter // tensor
    if not blocks or part % BLOCK == 0:
        return "", ""
    why = f"FP8 blocks of {BLOCK}: an expert's {inter:,} / {tensor} = {part:,} is no multiple"
    # Only kernels that compute in FP8 take smaller squares; the ones that widen weights do not.
    if engine == "vllm" and native is Native.NATIVE and math.gcd(BLOCK, part, shape.hidden) >= REFINED:
        return "", f"{why}; vLLM refines the scales to {math.gcd(BLOCK, part, shape.hidden)} for it"
    return why, ""
