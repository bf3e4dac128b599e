"""The reasoning and tool-call parsers that an engine has by name. Pure."""

from dataclasses import dataclass
from functools import cache

from selfhost.core.table import read_table


@dataclass(frozen=True, slots=True)
class Parsers:
    """Names of one engine, as registered in `version`."""

    version: str
    reasoning: frozenset[str]
    tool: frozenset[str]
    alike: tuple[frozenset[str], ...]
    source: str

    def same(self, one: str, other: str) -> bool:
        """Whether two names lead to one class."""
        return one == other or any({one, other} <= group for group in self.alike)


@cache
def parsers(engine: str) -> Parsers | None:
    """Of `vllm` or `sglang`; None for an engine that the table does not know."""
    row = read_table("selfhost.engines", "parsers.toml").get(engine)
    if row is None:
        return None
    return Parsers(
        version=row["version"],
        reasoning=frozenset(row["reasoning"]),
        tool=frozenset(row["tool"]),
        alike=tuple(frozenset(group) for group in row["alike"]),
        source=row["source"],
    )
