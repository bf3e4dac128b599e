"""The engine's log: one file it writes by itself, the former ones beside it under a number.

`engine.log` is the present run, `engine-1.log` the run before. A run that writes more than the limit leaves its older
parts in `engine.log.1` (newest) and so on.
"""

import os
import shutil
from pathlib import Path

KEEP_RUNS = 5
BLOCK_BYTES = 1024**2


def part(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def former(log: Path, number: int) -> Path:
    return log.with_name(f"{log.stem}-{number}{log.suffix}")


def begin(log: Path, *, keep: int = KEEP_RUNS) -> None:
    """Make room for a new run: number the former ones on. Parts are kept of the newest former run only."""
    for old in _parts(former(log, 1)):
        old.unlink()
    former(log, keep).unlink(missing_ok=True)
    for number in range(keep - 1, 0, -1):
        if former(log, number).exists():
            former(log, number).rename(former(log, number + 1))
    if log.exists():
        log.rename(former(log, 1))
    for old in _parts(log):
        old.rename(former(log, 1).with_name(former(log, 1).name + old.suffix))


def shorten(log: Path, *, limit_bytes: int, keep: int) -> bool:
    """Move the content of a log above its limit to a part, while the engine goes on writing into the same file.

    The engine holds the file open, so its content is copied and the file cut to nothing. It writes with O_APPEND and
    so continues at the new end. Copying goes on until nothing is left to copy; only what is written in the instant
    between the last look and the cut is lost.
    """
    try:
        if log.stat().st_size <= limit_bytes:
            return False
    except FileNotFoundError:
        return False
    part(log, keep).unlink(missing_ok=True)
    for number in range(keep - 1, 0, -1):
        if part(log, number).exists():
            part(log, number).rename(part(log, number + 1))
    handle = os.open(part(log, 1), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with log.open("r+b", buffering=0) as source, os.fdopen(handle, "wb", buffering=0) as target:
        while True:
            shutil.copyfileobj(source, target, BLOCK_BYTES)
            if source.tell() >= os.fstat(source.fileno()).st_size:
                os.ftruncate(source.fileno(), 0)
                return True


def _parts(log: Path) -> list[Path]:
    return sorted(found for found in log.parent.glob(f"{log.name}.*") if found.suffix[1:].isdigit())
