"""In which numbers weights are kept and computed, as decided: the value, what it is on this card, what it brings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.plan.fp8 import Form, Native, Support
from selfhost.plan.kv_precision import AS_COMPUTED, KvPrecision
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.precision import PLAIN

CHECKPOINT = "checkpoint"
"""As published, in a form that has scales of its own (FP8, INT4, MXFP4…)."""
MADE = {
    "fp8": Form.CHANNEL,
    "fp8_per_channel": Form.CHANNEL,
    "fp8_per_tensor": Form.TENSOR,
    "fp8_per_block": Form.BLOCK,
}
"""Names under which an engine module makes FP8 of 16-bit weights while they load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """`weights` and `kv` as the engine module is told; `own` as published (empty when unknown)."""

    weights: str
    kv: str
    own: str
    stored: str = ""
    """A quantized checkpoint's own form, finer than `own`: fp8_block, awq, gptq; empty where nobody said it."""
    form: Form | None = None
    """Over what one scale of FP8 reaches; None for other numbers, and where nobody said it of a checkpoint."""
    native: Native = Native.NATIVE
    why: str = ""
    """Why it is native or not, in a clause."""
    source: str = ""
    logs: tuple[str, ...] = ()
    """Lines of the engine's log, any of which proves the kernel that was expected; empty where it prints none."""
    experts_logs: tuple[str, ...] = ()
    """Likewise for the experts of a sparse model."""
    warning: str = ""
    """A line that the engine prints when it widens weights to compute."""
    switch: str = ""
    """Engine flags after which it would be computed natively."""
    note: str = ""
    """What else to know; of a plain precision, what FP8 would be here."""
    unverified: str = ""
    """Said when the engine's version is not the one whose code was read."""
    moe: str = ""
    """What a sparse model should know; empty for a dense one and for unchanged weights."""
    decode: tuple[float, float] = (1.0, 1.0)
    """Speed of decoding one request against the published precision: at worst, at best. Assumed: bound by memory."""
    prefill: tuple[float, float] = (1.0, 1.0)
    """Speed of reading a prompt, likewise."""
    alternatives: tuple[str, ...] = ()
    cache: KvPrecision = AS_COMPUTED

    @property
    def changes_behaviour(self) -> bool:
        """Another precision than the published one; FP32 holds every value of the others."""
        return bool(self.own) and self.weights not in (self.own, CHECKPOINT, "fp32")

    @property
    def scheme(self) -> str:
        """As the memory arithmetic names what is served: bf16, fp8, fp8_block, int4 and so on."""
        if self.weights == CHECKPOINT:
            return self.published
        if self.weights in MADE:
            return "fp8_block" if MADE[self.weights] is Form.BLOCK else "fp8"
        return self.weights

    @property
    def published(self) -> str:
        """As the memory arithmetic names what is stored."""
        blocks = self.own == "fp8" and self.weights == CHECKPOINT and self.form is Form.BLOCK
        return self.stored or ("fp8_block" if blocks else self.own or "bf16")

    @property
    def expectation(self) -> str:
        """`expected native`, `memory only`, `unproven`; empty for numbers that every card of this back end computes."""
        if self.form is None and self.weights in PLAIN:
            return ""
        return "expected native" if self.native is Native.NATIVE else self.native.value

    @property
    def computed(self) -> str:
        """What a value of the KV cache is without a separate wish."""
        return self.weights if self.weights in PLAIN else self.own if self.own in PLAIN else "bf16"

    @property
    def kv_value_bytes(self) -> float:
        return self.cache.bits / 8 if self.cache.bits else PLAIN.get(self.kv, PLAIN[self.computed])


def is_sparse(model: Model) -> bool:
    if isinstance(model.geometry, Known):
        return model.geometry.value.experts is not None
    return (
        isinstance(model.params_b, Known)
        and isinstance(model.active_b, Known)
        and model.active_b.value < 0.9 * model.params_b.value
    )


def of_checkpoint(scheme: str, *, engine: str, backend: str, arch: str) -> tuple[Native, str, str]:
    """What a published form other than FP8 is on a card: the state, why, and the source."""
    for row in _table()["form"]:
        if scheme in row["schemes"]:
            return Native(_state(row, engine, backend, arch)), row["why"], row["source"]
    return Native.UNPROVEN, f"what {scheme or 'this form'} becomes on this card, the engine's log tells", "selfhost"


def _state(row: Mapping[str, Any], engine: str, backend: str, arch: str) -> str:
    for card in row["cards"]:
        if all(
            re.fullmatch(card[key], said) for key, said in (("engine", engine), ("backend", backend), ("arch", arch))
        ):
            return str(card["state"])
    return Native.UNPROVEN.value


@cache
def _table() -> dict[str, Any]:
    return read_table("selfhost.plan", "precision.toml")


MOE = "rounding costs sparse models more than dense ones: each expert was trained on little"


def decode_gain(model: Model, own: str) -> tuple[float, float]:
    """Of FP8 against `own`: bytes read for one token before and after; the output head stays as published."""
    low = float(_table()["gain"]["decode"]["low"])
    before = PLAIN.get(own, 2.0)
    active = model.active_b if isinstance(model.active_b, Known) else model.params_b
    if not isinstance(active, Known) or not isinstance(model.geometry, Known):
        return low, before
    shape = model.geometry.value
    head_b = min(shape.vocab * shape.hidden / 1e9, active.value / 2)
    embedding_b = 0.0 if shape.tie else head_b  # one row of it is read for a token
    read_b = max(active.value - embedding_b, head_b)
    after = (read_b - head_b) + head_b * before
    if not after:
        return low, before
    return low, round(read_b * before / after, 2)


def prefill_gain(native: Native) -> tuple[float, float]:
    row = _table()["gain"]["prefill_native" if native is Native.NATIVE else "prefill_memory_only"]
    return float(row["low"]), float(row["high"])


def fp8(weights: str, *, own: str, model: Model, kv: KvPrecision, found: Support, backend: str) -> Precision:
    """The candidate that makes FP8 while loading."""
    on_cpu = backend == "cpu"
    return Precision(
        weights=weights,
        kv=kv.name,
        own=own,
        form=found.form,
        native=found.native,
        why=found.why,
        source=found.source,
        logs=found.logs,
        experts_logs=found.experts_logs,
        warning=found.warning,
        switch=found.switch,
        note=found.note,
        moe=MOE if is_sparse(model) else "",
        decode=(1.0, 1.0) if on_cpu else decode_gain(model, own),
        prefill=(1.0, 1.0) if on_cpu else prefill_gain(found.native),
        cache=kv,
    )
