"""How far an engine's start has come, read from its log as it grows. Pure: text in, hits out."""

import re
from dataclasses import dataclass, field
from functools import cache

from selfhost.core.table import read_table
from selfhost.engines.loglines import lines, plain

ORDER = (
    "config",
    "init",
    "download",
    "load",
    "quantize",
    "compile",
    "profile",
    "kv",
    "warmup",
    "graphs",
    "server",
    "ready",
)
"""Phases in order. Compilation runs inside vLLM's profiling, whose result line comes after it."""

LONGEST_LINE = 8192
"""Longer lines (an engine's whole configuration) are searched up to here."""

_ALTERNATIVE = re.compile(r"_\d\Z")
_BAR = ("done", "total", "pct")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseHit:
    """One line that says something about the start. `phase` is the one the start is in after it."""

    phase: str
    text: str
    """For people; empty when the line only carries facts."""
    captures: dict[str, str]
    """Facts by name: `weights_gib`, `kv_tokens`, `concurrency`, `load_s`…"""
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of phases.toml."""

    phase: str
    regex: re.Pattern[str]
    says: str


@cache
def rows(engine: str) -> tuple[Line, ...]:
    """The lines known of `engine`."""
    return tuple(
        Line(phase=row["phase"], regex=re.compile(row["regex"]), says=row.get("says", ""))
        for row in read_table("selfhost.engines", "phases.toml")["line"]
        if row["engine"] == engine
    )


@dataclass(slots=True)
class PhaseFollower:
    """Feed it the log in pieces of any size; lines may be torn between them. The phase never goes back in one start."""

    engine: str
    current: str = ""
    _torn: str = field(default="", repr=False)

    def feed(self, text: str) -> list[PhaseHit]:
        """Take in more of the log; return what its complete lines say, in order."""
        *complete, self._torn = lines(self._torn + text)
        self._torn = self._torn[:LONGEST_LINE]
        return [hit for line in complete for hit in self._read(line)]

    def finish(self) -> list[PhaseHit]:
        """Read the last line even though nothing ended it: the engine is gone."""
        line, self._torn = self._torn, ""
        return self._read(line)

    def _read(self, line: str) -> list[PhaseHit]:
        text = plain(line[:LONGEST_LINE]).rstrip()
        hits = []
        for row in rows(self.engine):
            match = row.regex.search(text)
            if match:
                self._enter(row.phase)
                hits.append(_hit(row, match, phase=self.current))
        return hits

    def _enter(self, phase: str) -> None:
        # A new start in the same log begins with the configuration again.
        again = phase == "config" and self.current in ("server", "ready")
        if again or not self.current or ORDER.index(phase) > ORDER.index(self.current):
            self.current = phase


def _hit(row: Line, match: re.Match[str], *, phase: str) -> PhaseHit:
    facts: dict[str, str] = {}
    for name, value in match.groupdict().items():
        if value is not None:
            facts.setdefault(_ALTERNATIVE.sub("", name), value.strip())
    done, total = _bar(facts)
    captures = {name: value for name, value in facts.items() if name not in _BAR}
    return PhaseHit(phase=phase, text=_words(row.says, facts), captures=captures, done=done, total=total)


def _bar(facts: dict[str, str]) -> tuple[int | None, int | None]:
    if "done" in facts and "total" in facts:
        return int(facts["done"]), int(facts["total"])
    if "pct" in facts:
        return int(facts["pct"]), 100
    return None, None


def _words(says: str, facts: dict[str, str]) -> str:
    """`says` with its facts; empty when this wording of the line lacks one of them."""
    wanted = re.findall(r"\{(\w+)\}", says)
    return says.format(**facts) if all(name in facts for name in wanted) else ""
