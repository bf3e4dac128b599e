"""The models one would try first, by alias, and the rule that picks one when none was named."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.model import Geometry
from selfhost.shapes.units import format_bytes

DEMONSTRATION = "smollm2-135m"
"""The model that selfhost can make without any model hub."""

ACCELERATOR_SHARE = 0.60
"""Weights may take this much of an accelerator: the rest is for the KV cache and activations."""
MEMORY_SHARE = 0.25
"""On a CPU: the weights are read twice while loading, and the machine is not ours alone."""
ACTIVE_B_PER_CORE = 0.5
"""On a CPU a token reads every active weight once; at some 5 GB/s per core 0.5 billion in bf16 still give about 5/s."""

_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "fp8": 1.0, "int8": 1.0}
_BLOCK_BYTES = {"mxfp4": 17 / 32, "int4": 0.5625}
"""MXFP4: 4 bits and one 8-bit scale for 32 values (OCP Microscaling 1.0). INT4: groups of 32 with a 16-bit scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRow:
    """One row of catalog.toml. Parameters in billions, context in tokens."""

    alias: str
    id: str
    match: str
    licence: str
    gated: bool
    architecture: str
    params_b: float
    active_b: float
    geometry: Geometry
    context: int
    native: str
    quantized_b: float = 0.0
    default: bool = False
    demonstration: bool = False
    revision: str = ""
    source: str

    @property
    def weights_bytes(self) -> Known[int] | Unknown:
        """An estimate: parameters times the bytes of their stored precision."""
        if self.native in _BYTES:
            return Known(int(self.params_b * 1e9 * _BYTES[self.native]), f"estimated: parameters in {self.native}")
        if self.native in _BLOCK_BYTES and self.quantized_b:
            packed = self.quantized_b * 1e9 * _BLOCK_BYTES[self.native]
            rest = (self.params_b - self.quantized_b) * 1e9 * _BYTES["bf16"]
            return Known(int(packed + rest), f"estimated: {self.quantized_b} B in {self.native}, the rest in bf16")
        return Unknown(f"no byte count is known for {self.native}")


@cache
def rows() -> tuple[CatalogRow, ...]:
    return tuple(_row(raw) for raw in read_table("selfhost.models", "catalog.toml")["model"])


def _row(raw: Mapping[str, Any]) -> CatalogRow:
    plain = ("id", "match", "licence", "gated", "architecture", "context", "native", "source")
    return CatalogRow(
        **{name: raw[name] for name in plain},
        alias=raw.get("alias", ""),
        params_b=float(raw["params_b"]),
        active_b=float(raw["active_b"]),
        quantized_b=float(raw.get("quantized_b", 0.0)),
        default=raw.get("default", False),
        demonstration=raw.get("demonstration", False),
        revision=raw.get("revision", ""),
        geometry=Geometry(
            layers=raw["layers"],
            full_layers=raw["full"],
            sliding_layers=raw["sliding"],
            linear_layers=raw["linear"],
            hidden=raw["hidden"],
            heads=raw["heads"],
            kv_heads=raw["kv_heads"],
            head_dim=raw["head_dim"],
            vocab=raw["vocab"],
            exact=raw["exact"],
        ),
    )


def by_alias(name: str) -> CatalogRow | None:
    return next((row for row in rows() if row.alias and row.alias == name.lower()), None)


def by_id(repo_id: str) -> CatalogRow | None:
    return next((row for row in rows() if row.id.lower() == repo_id.lower()), None)


def relative_of(repo_id: str) -> CatalogRow | None:
    """The row whose geometry a derived repository (quantized, fine-tuned) shares, by its `match`."""
    return by_id(repo_id) or next((row for row in rows() if re.search(row.match, repo_id, re.IGNORECASE)), None)


def nearest(name: str, *, count: int = 3) -> tuple[str, ...]:
    """Known aliases and ids that look like `name`, most alike first."""
    spelled = {alias.lower(): alias for alias in _names()}
    found = difflib.get_close_matches(name.lower(), list(spelled), n=count, cutoff=0.7)
    if not found and "/" in name:  # the organisation is often what is wrong: compare the repository's own name
        tails = {row.id.rpartition("/")[2].lower(): row.id for row in rows()}
        return tuple(
            tails[tail] for tail in difflib.get_close_matches(name.rpartition("/")[2].lower(), list(tails), count, 0.7)
        )
    return tuple(spelled[one] for one in found)


def _names() -> Iterator[str]:
    for row in rows():
        if row.alias:
            yield row.alias
        yield row.id


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
    fitting = [row for row in _candidates(accelerator_bytes is None, cores=cores) if _weighs(row) <= budget]
    best = max(fitting, key=lambda row: row.params_b, default=None)
    if best is None or best.demonstration:
        return DEMONSTRATION, ("no larger default model suits this machine: a demonstration, too small to be useful")
    where = (
        f"{ACCELERATOR_SHARE:.0%} of the accelerator's {format_bytes(accelerator_bytes)}"
        if accelerator_bytes is not None
        else f"{MEMORY_SHARE:.0%} of {format_bytes(memory_bytes)} memory and bearable on {cores:g} cores"
    )
    return best.alias, f"the largest default model whose weights ({format_bytes(_weighs(best))}) fit {where}"


def _candidates(on_cpu: bool, *, cores: float) -> Iterator[CatalogRow]:  # noqa: FBT001 - named by its only caller
    for row in rows():
        if row.default and (not on_cpu or row.active_b <= cores * ACTIVE_B_PER_CORE):
            yield row


def _weighs(row: CatalogRow) -> float:
    known = row.weights_bytes
    return known.value if isinstance(known, Known) else float("inf")
