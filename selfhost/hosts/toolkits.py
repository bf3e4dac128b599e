"""Versions of container toolkits that are known to fail, out of toolkits.toml."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.core.versions import numbers
from selfhost.shapes.fact import Vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`first` up to and with `last`; an empty `last` is open. `needs` says where alone it fails, empty everywhere."""

    vendor: str
    first: str
    last: str
    needs: str
    what: str
    why: str
    fix: str
    source: str


def windows(vendor: Vendor, version: tuple[int, ...]) -> Iterator[Window]:
    for row in _rows():
        below = not row.last or version <= numbers(row.last)
        if row.vendor == vendor.value and numbers(row.first) <= version and below:
            yield row


@cache
def _rows() -> tuple[Window, ...]:
    rows: list[dict[str, Any]] = read_table("selfhost.hosts", "toolkits.toml")["bad"]
    return tuple(Window(**row) for row in rows)
