"""The rule that picks a model when none was named."""

from collections.abc import Iterator

from selfhost.models.catalog import CatalogRow, rows
from selfhost.shapes.host import Known
from selfhost.shapes.units import format_bytes

DEMONSTRATION = "smollm2-135m"
"""The model that selfhost can make without any model hub."""

ACCELERATOR_SHARE = 0.60
"""Weights may take this much of an accelerator: the rest is for the KV cache and activations."""
MEMORY_SHARE = 0.25
"""On a CPU: the weights are read twice while loading, and the machine is not ours alone."""
ACTIVE_B_PER_CORE = 0.5
"""On a CPU a token reads every active weight once; at some 5 GB/s per core 0.5 billion in bf16 still give about 5/s."""


def pick_default(
    *, memory_bytes: int, cores: float, accelerator_bytes: int | None, hub_reachable: bool
) -> tuple[str, str]:
    """The alias to serve when none was named, and why in one clause.

    On an accelerator: the largest default model whose weights take at most 60 % of its memory. On a CPU: the largest
    one whose weights take at most 25 % of the memory and that stays bearable, at most 0.5 B active parameters per core.
    """
    if not hub_reachable:
        return DEMONSTRATION, (
            "the model hub cannot be reached, so only the model that comes with a Python package is left: "
            "a demonstration, too small to be useful"
        )
    budget = accelerator_bytes * ACCELERATOR_SHARE if accelerator_bytes is not None else memory_bytes * MEMORY_SHARE
    fitting = [row for row in _candidates(on_cpu=accelerator_bytes is None, cores=cores) if _weighs(row) <= budget]
    best = max(fitting, key=lambda row: row.params_b, default=None)
    if best is None or best.demonstration:
        return DEMONSTRATION, ("no larger default model suits this machine: a demonstration, too small to be useful")
    where = (
        f"{ACCELERATOR_SHARE:.0%} of the accelerator's {format_bytes(accelerator_bytes)}"
        if accelerator_bytes is not None
        else f"{MEMORY_SHARE:.0%} of {format_bytes(memory_bytes)} memory and bearable on {cores:g} cores"
    )
    return best.alias, f"the largest default model whose weights ({format_bytes(_weighs(best))}) fit {where}"


def _candidates(*, on_cpu: bool, cores: float) -> Iterator[CatalogRow]:
    for row in rows():
        if row.default and (not on_cpu or row.active_b <= cores * ACTIVE_B_PER_CORE):
            yield row


def _weighs(row: CatalogRow) -> float:
    known = row.weights_bytes
    return known.value if isinstance(known, Known) else float("inf")
