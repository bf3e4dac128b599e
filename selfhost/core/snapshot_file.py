"""A snapshot on disk: redacted before it is written, whole or not at all, and never in place of something else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.files import write_atomic
from selfhost.core.snapshot_form import SCHEMA


def check_target(path: Path) -> None:
    """Raises InputError when `path` is something that a snapshot must not replace."""
    if not path.exists():
        return
    try:
        is_ours = path.is_file() and json.loads(path.read_text(encoding="utf-8")).get("schema") == SCHEMA
    except (OSError, ValueError, AttributeError):
        is_ours = False
    if not is_ours:
        raise InputError(
            f"{path} exists and is no snapshot, so it is not overwritten",
            fix=("name another file:\nselfhost detect --save snapshot.json",),
            id="CF047",
        )


def save(path: Path, snapshot: Mapping[str, Any]) -> Mapping[str, int]:
    """Write `snapshot` redacted, readable by its owner only. Returns how many of which kind were replaced."""
    from selfhost.core.redaction import redacted

    check_target(path)
    clean, replaced = redacted(snapshot)
    try:
        write_atomic(path, json.dumps(clean, indent=1, ensure_ascii=False) + "\n", mode=0o600)
    except OSError as error:
        raise EnvironmentMissing(
            f"{path} cannot be written",
            why=f"{error.strerror or error}.",
            fix=("name a file in a folder of yours:\nselfhost detect --save ~/snapshot.json",),
            id="CF049",
        ) from error
    return replaced
