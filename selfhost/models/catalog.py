"""The table of the models one would try first: by alias, by hub id, by likeness."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.geometry import Experts, Geometry, Latent, Recurrence, State, Window
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.precision import VALUE_BYTES

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
    stored: str = ""
    """Finer than `native`: `fp8_block`; empty where nobody said it."""
    quantized_b: float = 0.0
    default: bool = False
    demonstration: bool = False
    revision: str = ""
    source: str

    @property
    def weights_bytes(self) -> Known[int] | Unknown:
        """An estimate: parameters times the bytes of their stored precision."""
        if self.native in VALUE_BYTES:
            return Known(int(self.params_b * 1e9 * VALUE_BYTES[self.native]), f"estimated: parameters in {self.native}")
        if self.native in _BLOCK_BYTES and self.quantized_b:
            packed = self.quantized_b * 1e9 * _BLOCK_BYTES[self.native]
            rest = (self.params_b - self.quantized_b) * 1e9 * VALUE_BYTES["bf16"]
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
        stored=raw.get("stored", ""),
        default=raw.get("default", False),
        demonstration=raw.get("demonstration", False),
        revision=raw.get("revision", ""),
        geometry=_geometry(raw),
    )


def _geometry(raw: Mapping[str, Any]) -> Geometry:
    """The columns of a row as the shape they describe; what a row leaves out is the plain dense form."""
    plain = ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "exact")
    optional = (
        "v_head_dim", "window", "full_kv_heads", "full_head_dim", "intermediate", "tie", "layer_embeddings", "vision",
        "mtp_layers", "mm_profile_bytes", "note",
    )  # fmt: skip
    state = raw.get("state")
    return Geometry(
        **{name: raw[name] for name in plain},
        **{name: raw[name] for name in optional if name in raw},
        full_layers=raw["full"],
        sliding_layers=raw["sliding"],
        linear_layers=raw["linear"],
        window_kind=Window(raw.get("window_kind", "sliding")),
        latent=Latent(**raw["latent"]) if "latent" in raw else None,
        state=State(**{**state, "kind": Recurrence(state["kind"])}) if state else None,
        experts=Experts(**raw["experts"]) if "experts" in raw else None,
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
