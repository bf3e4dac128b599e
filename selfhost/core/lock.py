"""A lock that the kernel frees when its holder dies, and that says who holds it."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from selfhost.core.files import ensure_folder


class Held(Exception):
    """The lock is held; the caller answers with a Busy error in its own words.

    `holder` is what the holder wrote about itself (empty when unreadable).
    """

    def __init__(self, holder: Mapping[str, object]) -> None:
        super().__init__(str(dict(holder)))
        self.holder = dict(holder)


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
    ensure_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # CLOEXEC: an engine must not inherit it
    try:
        _acquire(handle, wait_s=wait_s, on_wait=on_wait)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(dict(who)).encode() + b"\n", 0)
        yield
    finally:
        os.close(handle)  # frees the lock; the file stays, so nobody locks an unlinked one


def _acquire(handle: int, *, wait_s: float, on_wait: Callable[[Mapping[str, object]], None]) -> None:
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(handle)
            if not told:
                on_wait(holder)
                told = True
            if time.monotonic() >= deadline:
                raise Held(holder) from None
            time.sleep(0.1)
        else:
            return


def _read_holder(handle: int) -> dict[str, object]:
    text = os.pread(handle, 4096, 0)
    if not text.endswith(b"}\n"):
        return {}
    holder = json.loads(text)
    return holder if isinstance(holder, dict) else {}


def holder_of(path: Path) -> dict[str, object] | None:
    """What the present holder wrote about itself, or None when nobody holds `path`."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(handle)
    else:
        return None
    finally:
        os.close(handle)
