"""The figures of memory.toml, read once."""

from functools import cache
from typing import Any

from selfhost.core.table import read_table


@cache
def table() -> dict[str, Any]:
    return read_table("selfhost.plan.memory", "memory.toml")


def figure(section: str, name: str) -> float:
    """Its source stands beside it."""
    value: float = table()[section][name]["value"]
    return value
