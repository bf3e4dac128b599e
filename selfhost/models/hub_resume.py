"""One large file by plain HTTP into the cache, continued where any earlier attempt stopped, even a killed one.

huggingface_hub 2.x removes the partial file of a failed download and never finds that of a killed one; for weights
that is hours. Files from Xet storage stay with the library, which alone knows how to assemble them.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.files import sync_folder
from selfhost.core.lock import hold

ATTEMPTS_WITHOUT_PROGRESS = 5
_PAUSE_S = 1.0
WAIT_FOR_OTHER_S = 6 * 3600.0
"""Another download of the same file is waited for: its bytes are ours too."""
_BLOCK = 8 * 1024 * 1024


class Interrupted(OSError):
    """The server or the network broke off; worth another try."""


class Corrupt(OSError):
    """All bytes came, and they are not the file that was announced."""


@dataclass(frozen=True, slots=True)
class Range:
    """A running answer. `start` is the offset of its first byte: 0 when the server ignores ranges."""

    start: int
    chunks: Iterator[bytes]


Opener = Callable[[int], AbstractContextManager[Range]]
"""Opens the file from an offset; raises Interrupted for what may pass."""


def partial_of(blob: Path) -> Path:
    return blob.with_name(f"{blob.name}.selfhost.incomplete")


def fetch(
    blob: Path,
    *,
    size: int,
    sha256: str,
    lock: Path,
    who: Mapping[str, object],
    open_from: Opener,
    at: Callable[[int], None],
    on_wait: Callable[[Mapping[str, object]], None],
) -> None:
    """Make `blob` exist with exactly these bytes. `at` is told how many are here. Raises Interrupted, Corrupt, Held.

    `on_wait` is told who holds the lock, when another download of the same file is at work.
    """
    blob.parent.mkdir(parents=True, exist_ok=True)
    with hold(lock, who, wait_s=WAIT_FOR_OTHER_S, on_wait=on_wait):
        if blob.exists():
            return
        partial = partial_of(blob)
        _drop_orphans(blob, partial)
        _fill(partial, size=size, open_from=open_from, at=at)
        if _digest(partial) != sha256:
            partial.unlink()
            raise Corrupt(f"{size:,} bytes came, but not those with SHA-256 {sha256[:12]}…")
        partial.chmod(0o644)
        partial.replace(blob)
        sync_folder(blob.parent)


def _drop_orphans(blob: Path, partial: Path) -> None:
    """Remove what killed downloads of the hub's library left of this file: it never reads them again.

    We hold the file's lock, so nobody is writing to them.
    """
    for leftover in blob.parent.glob(f"{blob.name}.*.incomplete"):
        if leftover != partial:
            leftover.unlink(missing_ok=True)


def _fill(partial: Path, *, size: int, open_from: Opener, at: Callable[[int], None]) -> None:
    tries = 0
    while True:
        had = partial.stat().st_size if partial.exists() else 0
        if had > size:
            partial.unlink()
            had = 0
        if had == size and partial.exists():
            return
        try:
            _append(partial, had, open_from=open_from, at=at)
            broken: Interrupted | None = None
        except Interrupted as error:
            broken = error
        has = partial.stat().st_size if partial.exists() else 0
        if has == size:
            return
        tries = 0 if has > had else tries + 1
        if tries >= ATTEMPTS_WITHOUT_PROGRESS:
            raise broken or Interrupted(f"the server ends after {has:,} of {size:,} bytes")
        time.sleep(_PAUSE_S)


def _append(partial: Path, had: int, *, open_from: Opener, at: Callable[[int], None]) -> None:
    with open_from(had) as answer, partial.open("r+b" if partial.exists() else "wb") as stream:
        stream.seek(answer.start)
        stream.truncate()
        here = answer.start
        at(here)
        for chunk in answer.chunks:
            stream.write(chunk)
            here += len(chunk)
            at(here)


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            total.update(block)
    return total.hexdigest()
