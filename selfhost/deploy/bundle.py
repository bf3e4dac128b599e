"""Rendered files in a folder: what is there, and whether somebody else wrote it."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

MOST_BYTES = 1024 * 1024
"""A larger file is none of ours."""


def text_of(path: Path) -> str | None:
    """None for what is not there. What is no text is still text to compare: it differs from ours."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def differs(path: Path, text: str) -> bool:
    return text_of(path) != text


def sum_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def with_sum(known: Sequence[str], text: str) -> list[str]:
    """The sums of what we wrote of one file, each once, the newest last."""
    new = sum_of(text)
    return [*[one for one in known if one != new][-4:], new]


def texts_of(folder: Path) -> Mapping[str, str]:
    """Every file below `folder` by its relative path, the user's overrides among them."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".edited-" not in path.name and path.stat().st_size <= MOST_BYTES:
            found[str(path.relative_to(folder))] = path.read_text(encoding="utf-8", errors="replace")
    return found


def set_beside(path: Path) -> Path:
    """Move a file that somebody edited out of the way; returns where it is now."""
    kept = path.with_name(f"{path.name}.edited-{time.strftime('%Y-%m-%dT%H-%M-%S')}")
    path.rename(kept)
    return kept


def changed_lines(diff: str) -> list[str]:
    """Of a unified diff what a person looks for first: the lines that are not the same."""
    return [line for line in diff.splitlines() if line.startswith(("-", "+")) and not line.startswith(("--- ", "+++ "))]
