"""A snapshot on the disk: whole or not there, for its owner's eyes, and never over a file of another kind."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.files import write_atomic
from selfhost.core.snapshot_form import SCHEMA

_HEAD = 4096


def check_place(path: Path) -> None:
    """Raise InputError when something lies there that a snapshot must not replace. Asked before the long look."""
    try:
        head = path.open(encoding="utf-8", errors="replace").read(_HEAD) if path.exists() else f'"{SCHEMA}"'
    except OSError as error:
        raise _unwritable(path, error) from error
    if head.strip() and f'"{SCHEMA}"' not in head:
        raise InputError(
            f"{path} is no snapshot, so it is not overwritten",
            why="Something else lies under that name.",
            fix=("name another file:\nselfhost detect --save machine.json",),
            id="CF044",
        )


def save(path: Path, snapshot: Mapping[str, Any]) -> None:
    """0600: it is redacted, but whom it is shown to is its owner's choice. Raises EnvironmentMissing."""
    try:
        write_atomic(path, json.dumps(snapshot, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"the snapshot cannot be written to {path}",
        why=f"{error.strerror or error}.",
        fix=("name a place where you may write:\nselfhost detect --save ~/machine.json",),
        id="CF045",
    )
