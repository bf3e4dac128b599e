"""Reading for probes to which "not there" is an answer like any other."""

from collections.abc import Mapping

from selfhost.core.system import System

_MOST_DIGITS = 40  # 2^128 has 39; Python refuses to read more than 4300


def glance(system: System, path: str) -> str:
    """The text of `path` without white space at its ends; empty when it is missing or refused."""
    try:
        return system.read(path).strip("\0 \t\r\n")
    except OSError:
        return ""


def names(system: System, path: str) -> tuple[str, ...]:
    """What lies in the directory `path`, in order; nothing when it is missing or refused."""
    try:
        return system.listdir(path)
    except OSError:
        return ()


def exists(system: System, path: str) -> bool:
    try:
        system.stat(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # refused, so there is something to refuse
    return True


def number(text: str) -> int | None:
    """A decimal integer, or None for every other text (`max`, nothing at all, more digits than any counter has)."""
    return int(text) if text.removeprefix("-").isdecimal() and len(text) <= _MOST_DIGITS else None


def pairs(text: str, *, separator: str | None = None) -> Mapping[str, str]:
    """`name value` lines as a mapping. Values keep their inner spaces."""
    split = (line.split(separator, 1) for line in text.splitlines())
    return {parts[0].strip(): parts[1].strip() for parts in split if len(parts) == 2}
