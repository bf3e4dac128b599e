"""Which rows of the table of failures a log shows, the best first."""

import re
from dataclasses import dataclass

from selfhost.engines.condense import Condensed
from selfhost.engines.failures import WRAPPER_PRIO, Failure, rows

EXIT_CODE_PENALTY = 30

ACCESS_PENALTY = 85
"""A refused request in the access log is what it is, but never why an engine died; it ranks behind wrapper lines."""

_ACCESS_LINE = re.compile(r'"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) \S+ HTTP/\d(?:\.\d)?" [45]\d\d')

_STAGE_OF_MEMORY = {
    "load": "load",
    "quantize": "load",
    "compile": "profile",
    "profile": "profile",
    "kv": "graphs",
    "warmup": "graphs",
    "graphs": "graphs",
}
"""Which of the rows for exhausted device memory a phase of the start belongs to, where no traceback says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A row found in a log; `positions` are places in the condensed text, the root first, none for an exit code."""

    failure: Failure
    prio: int
    positions: tuple[int, ...]

    @property
    def is_weak(self) -> bool:
        """Whether it only reports that something failed, not why."""
        return self.prio >= WRAPPER_PRIO

    @property
    def rank(self) -> tuple[int, float, str]:
        return self.prio, self.positions[0] if self.positions else float("inf"), self.failure.id


def find(log: Condensed, *, exit_code: int | None = None, stage: str | None = None, requests: bool = True) -> list[Hit]:
    """Rows found in `log`, the best first. `stage` is the phase of the start at which it ended."""
    table = [row for row in rows() if requests or not row.request]
    hits = [hit for row in table if (hit := _match(row, log, exit_code=exit_code, stage=stage))]
    return sorted(hits, key=lambda hit: hit.rank)


def _match(row: Failure, log: Condensed, *, exit_code: int | None, stage: str | None) -> Hit | None:
    positions = _positions(row, log.text, stage=stage)
    if positions:
        if any(pattern.search(log.text) for pattern in row.none):
            return None
        access = _ACCESS_LINE.search(log.line(log.line_at(positions[0])))
        return Hit(failure=row, prio=row.prio + (ACCESS_PENALTY if access else 0), positions=positions)
    if exit_code is not None and exit_code in row.exit_codes:
        return Hit(failure=row, prio=row.prio + EXIT_CODE_PENALTY, positions=())
    return None


def _positions(row: Failure, text: str, *, stage: str | None) -> tuple[int, ...]:
    found = [match.start() for pattern in row.any if (match := pattern.search(text))]
    if found:
        return (min(found),)
    if not row.all:
        return ()
    root = row.all[0].search(text)
    if not root:
        return ()
    rest = [pattern.search(text) for pattern in row.all[1:]]
    if all(rest):
        return (root.start(), *(match.start() for match in rest if match))
    if stage and row.stage and _STAGE_OF_MEMORY.get(stage) == row.stage:
        return (root.start(),)
    return ()
