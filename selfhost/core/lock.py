"""A lock that the kernel frees when its holder dies, and that says who holds it."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from selfhost.core.files import ensure_folder

PATIENCE_S = 0.5
"""Even who does not want to wait tries this long: a look at the lock (`holder_of`) takes it for a moment."""


class Held(Exception):
    """The lock is held; the caller answers with a Busy error in its own words.

    `holder` is what the holder wrote about itself (empty when unreadable).
    """

    def __init__(self, holder: Mapping[str, object]) -> None:
        super().__init__(str(dict(holder)))
        self.holder = dict(holder)


def me(command: str, **more: object) -> dict[str, object]:
    """What a holder writes about itself: pid, command and since when, in local time."""
    since = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
    return {"pid": os.getpid(), "command": command, "since": since, **more}


def _ignore(_: Mapping[str, object]) -> None:
    return None


@contextlib.contextmanager
def hold(
    path: Path,
    who: Mapping[str, object],
    *,
    wait_s: float = 0.0,
    on_wait: Callable[[Mapping[str, object]], None] = _ignore,
) -> Iterator[None]:
    """Hold `path` exclusively. A killed holder frees it at once; `on_wait` is told once who holds it. Raises Held."""
    handle = _acquire(path, wait_s=max(wait_s, PATIENCE_S), tell=on_wait, patience_s=PATIENCE_S)
    try:
        _write(handle, path, json.dumps(dict(who)).encode() + b"\n")
        yield
    finally:
        with contextlib.closing(os.fdopen(handle, "r+b", buffering=0)) as file:
            file.truncate(0)  # nobody is to read the name of a holder that has left; closing frees the lock


def _write(handle: int, path: Path, text: bytes) -> None:
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, text, 0)
    except OSError as error:
        error.filename = str(path)
        raise


def _acquire(path: Path, *, wait_s: float, tell: Callable[[Mapping[str, object]], None], patience_s: float) -> int:
    """An open file with the lock on it, which still is the one that `path` names."""
    began = time.monotonic()
    told = False
    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(handle)
            os.close(handle)
            waited = time.monotonic() - began
            if not told and waited >= patience_s:
                tell(holder)
                told = True
            if waited >= wait_s:
                raise Held(holder) from None
            time.sleep(0.05)
        else:
            if _still(path, handle):
                return handle
            os.close(handle)  # who held it removed the folder meanwhile; the next one to come has another file


def _open(path: Path) -> int:
    """Open the lock's file, making it and its folder; a folder that is removed at the same moment is made again."""
    for _ in range(100):
        ensure_folder(path.parent)
        try:
            # CLOEXEC: an engine must not inherit it
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
    raise FileNotFoundError(path)


def _still(path: Path, handle: int) -> bool:
    try:
        return os.fstat(handle).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _read_holder(handle: int) -> dict[str, object]:
    text = os.pread(handle, 4096, 0)
    if not text.endswith(b"}\n"):
        return {}
    holder = json.loads(text)
    return holder if isinstance(holder, dict) else {}


def holder_of(path: Path) -> dict[str, object] | None:
    """What the present holder wrote about itself, or None when nobody holds `path`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(handle)
    else:
        return None
    finally:
        os.close(handle)
