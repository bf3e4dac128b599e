"""Flags, values and variables that an engine has dropped, and since which version. Pure."""

from dataclasses import dataclass
from functools import cache

from selfhost.core.table import read_table


@dataclass(frozen=True, slots=True)
class Removed:
    """`since` is the first version without it. `instead` is empty when nothing takes its place."""

    engine: str
    kind: str
    """flag, value (of the flag `name`) or env."""
    name: str
    value: str
    since: str
    instead: str


@cache
def removed(engine: str) -> tuple[Removed, ...]:
    rows = read_table("selfhost.engines", "removed.toml")["removed"]
    return tuple(
        Removed(row["engine"], row["kind"], row["name"], row.get("value", ""), row["since"], row["instead"])
        for row in rows
        if row["engine"] == engine
    )
