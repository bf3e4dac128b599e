"""Rendered files beside those on a disk: what differs, as a diff that a person can read."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from selfhost.shapes.bundle import Bundle

_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`state`: `changed`, `missing` (not on the disk), `extra` (on the disk, but not rendered)."""

    path: str
    state: str
    diff: str
    """Unified, from what is on the disk to what the plan gives."""


def differences(bundle: Bundle, on_disk: Mapping[str, str | None]) -> tuple[Difference, ...]:
    """`on_disk` by relative path; None, or no entry, is a file that is not there. What is the same is not told."""
    found = []
    for path in (*bundle.files, *(path for path in on_disk if path not in bundle.files)):
        there, here = on_disk.get(path), bundle.files.get(path)
        if there == here:
            continue
        state = "missing" if there is None else "extra" if here is None else "changed"
        found.append(Difference(path=path, state=state, diff=_diff(path, there, here)))
    return tuple(found)


def _diff(path: str, there: str | None, here: str | None) -> str:
    lines = difflib.unified_diff(
        _lines(there),
        _lines(here),
        fromfile=f"{path} (on disk)" if there is not None else "/dev/null",
        tofile=f"{path} (from the plan)" if here is not None else "/dev/null",
        lineterm="",
    )
    return "\n".join(line.replace("\r", "\\r") for line in lines)


def _lines(text: str | None) -> list[str]:
    """Broken at line feeds only; what has none at its end says so, since that is a difference too."""
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n{_END}"]
