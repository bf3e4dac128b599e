"""Which release of an engine a written version means, as far as it can be read."""

import re
from functools import cache

from selfhost.plan.memory.figures import table

Release = tuple[int, ...]
"""Its numbers, as many as were said: (0, 19) <= (0, 19, 1) < (0, 20)."""


@cache
def _months(engine: str) -> tuple[tuple[str, Release], ...]:
    rows = table()["release"]
    return tuple((row["month"], numbers(row["version"])) for row in rows if row["engine"] == engine)


def numbers(text: str) -> Release:
    return tuple(int(part) for part in text.split("."))


def release(engine: str, version: str) -> Release:
    """`0.27 (2026-08)` → (0, 27); a development build counts by its date; what says nothing is the newest."""
    found = _NUMBERS.match(version)
    dated = _of_month(engine, version)
    if found is None or _UNTAGGED.match(version):
        return dated or _months(engine)[-1][1]
    said = numbers(".".join(part for part in found.groups() if part))
    return dated if dated is not None and dated[: len(said)] == said else said


def _of_month(engine: str, version: str) -> Release | None:
    """The newest release of a month that stands in the version."""
    day, months = _MONTH.search(version), _months(engine)
    if day is None:
        return None
    written = f"{day[1]}-{day[3] or day[2]}"
    return ([one for month, one in months if month <= written] or [months[0][1]])[-1]


def is_said(version: str) -> bool:
    """Whether the version, or a date in it, says which release it is."""
    return bool(_MONTH.search(version) or (_NUMBERS.match(version) and not _UNTAGGED.match(version)))


_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?![\dx])(?:\.(\d+))?(?![\dx])")
_MONTH = re.compile(r"(20\d\d)-(\d\d)(?:/(\d\d))?")
_UNTAGGED = re.compile(r"v?0\.[01](\.0)?\.dev\d+")
"""`0.1.dev20073+g…`: built from a checkout without tags, the number says nothing."""
