"""Since which version an engine knows a flag: rows of flags_added.toml. Pure."""

import re
from collections.abc import Iterable
from functools import cache

from selfhost.core.table import read_table


@cache
def _added(engine: str) -> dict[str, str]:
    rows = read_table("selfhost.engines", "flags_added.toml")["release"]
    return {flag: row["version"] for row in rows if row["engine"] == engine for flag in row["added"]}


def since(engine: str, flag: str) -> str:
    """The first version with `flag`; empty for one that was there before the table begins, and for an unknown one."""
    return _added(engine).get(flag, "")


def too_new(engine: str, version: str, argv: Iterable[str]) -> tuple[str, ...]:
    """Those of the flags of `argv` that came after `version`, by full name without their values."""
    names = (word.partition("=")[0].partition(".")[0] for word in argv if word.startswith("--"))
    return tuple(name for name in names if _numbers(since(engine, name)) > _numbers(version))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
