"""The table of engine failures: rows of failures.toml."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.finding import Severity

WRAPPER_PRIO = 90
"""From here on a line only reports that something else failed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One action; for one engine, from a version on or before one, or only with (or without) an extracted value."""

    do: str
    engine: str = ""
    since: str = ""
    until: str = ""
    needs: str = ""
    lacks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A row of failures.toml."""

    id: str
    title: str
    why: str
    prio: int
    kind: str
    stage: str
    engines: tuple[str, ...]
    source: str
    fix: tuple[Fix, ...]
    severity: Severity = Severity.ERROR
    request: bool = False
    """The refusal of a single request, such as smoke sends on purpose; an engine never ends of it."""
    exit_codes: tuple[int, ...] = ()
    any: tuple[re.Pattern[str], ...] = ()
    all: tuple[re.Pattern[str], ...] = ()
    none: tuple[re.Pattern[str], ...] = ()
    extract: tuple[re.Pattern[str], ...] = ()

    @property
    def is_wrapper(self) -> bool:
        return self.prio >= WRAPPER_PRIO


@cache
def rows() -> tuple[Failure, ...]:
    """Every row, expressions compiled once."""
    return tuple(_row(row) for row in read_table("selfhost.engines", "failures.toml")["failure"])


def _row(row: dict[str, Any]) -> Failure:
    return Failure(
        id=row["id"],
        title=row["title"],
        why=row["why"],
        prio=row["prio"],
        kind=row["kind"],
        stage=row["stage"],
        engines=tuple(row["engines"]),
        source=row["source"],
        fix=tuple(Fix(**fix) for fix in row["fix"]),
        severity=Severity(row.get("severity", "error")),
        request=row.get("request", False),
        exit_codes=tuple(row.get("exit_codes", ())),
        any=_patterns(row, "any"),
        all=_patterns(row, "all"),
        none=_patterns(row, "none"),
        extract=_patterns(row, "extract"),
    )


def _patterns(row: dict[str, Any], key: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.MULTILINE) for text in row.get(key, ()))
