"""How long a container may take to load and to end. Seconds."""

import math
from dataclasses import dataclass

from selfhost.engines.names import shown
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import EngineBuild
from selfhost.shapes.units import format_bytes

SLOW_DISK = 100 * 10**6
"""Bytes a second of a hard disk or a network file system; anything slower is not what a model is served from."""
_START = {"cpu": 120, "cuda": 600, "rocm": 900, "xpu": 600}
"""Imports, compiling and capturing with nothing cached; ROCm compiles AITER's kernels too."""
_MINUTE = 60
_END = {"vllm": 30, "sglang": 60}
"""vLLM aborts what runs and frees the card; SGLang answers what it was asked before it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    seconds: float
    reason: str


def start_period(model: Model, build: EngineBuild, *, weights: int) -> Wait:
    """`weights`: bytes that stand for the checkpoint where its size is not known."""
    size = model.weights_bytes.value if isinstance(model.weights_bytes, Known) else weights
    load, start = math.ceil(size / SLOW_DISK), _START[build.backend]
    total = math.ceil((load + start) / _MINUTE) * _MINUTE
    return Wait(
        seconds=float(total),
        reason=f"failures do not count for {total // _MINUTE} min: {format_bytes(size)} from a disk of 100 MB/s are "
        f"{load} s, and a first start compiles for up to {start} s; so starting is loading, unhealthy is hung",
    )


def stop_grace(build: EngineBuild, passed: PassedOn) -> Wait:
    asked = passed.count("--shutdown-timeout") if build.engine == "vllm" else None
    seconds = _END[build.engine] + (asked or 0)
    drains = f"requests may end for {asked} s, and then " if asked else ""
    return Wait(
        seconds=float(seconds),
        reason=f"{drains}{shown(build.engine)} gets {_END[build.engine]} s to free the card; killed before, it may "
        "leave memory behind",
    )
