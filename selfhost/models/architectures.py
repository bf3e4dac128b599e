"""What a model_type means beyond what its config.json writes down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.geometry import Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One row of architectures.toml, whose head explains each column."""

    known: bool = True
    every: int = 0
    chunked: bool = False
    window_plus: int = 0
    state: Recurrence | None = None
    ssm_bytes: int = 0
    attention: str = ""
    shares: bool = False
    sublayers: int = 1
    tie: bool = False
    defaults: Mapping[str, int] = field(default_factory=dict)
    inexact: str = ""


def architecture_of(model_type: str) -> Architecture:
    """The row of a model_type; one that nobody knows is read as a plain transformer."""
    return _table().get(model_type, Architecture(known=False))


@cache
def _table() -> dict[str, Architecture]:
    raw = read_table("selfhost.models", "architectures.toml")
    plain = Architecture()
    return dict.fromkeys(raw["plain"], plain) | {
        name: row for one in raw["architecture"] for row in (_row(one),) for name in one["types"]
    }


def _row(raw: Mapping[str, Any]) -> Architecture:
    plain = {name: value for name, value in raw.items() if name not in ("types", "source", "state")}
    return Architecture(**plain, state=Recurrence(raw["state"]) if "state" in raw else None)
