"""`logs`: the engine's own log, whole or followed across rotation and restarts."""

import time
from collections.abc import Iterator
from pathlib import Path

from selfhost.deploy.follow import Tail

POLL_S = 0.3


def last_lines(path: Path, count: int | None) -> str:
    """The last `count` lines of a log, or all of it; read from the end, so a large log costs nothing."""
    if count is None:
        return path.read_text(encoding="utf-8", errors="replace")
    if count <= 0:
        return ""
    block = 64 * 1024
    with path.open("rb") as stream:
        position = stream.seek(0, 2)
        data = b""
        while position > 0 and data.count(b"\n") <= count:
            step = min(block, position)
            position -= step
            stream.seek(position)
            data = stream.read(step) + data
    return b"".join(data.splitlines(keepends=True)[-count:]).decode("utf-8", "replace")


def follow(path: Path, *, count: int | None) -> Iterator[str]:
    """The last lines, then everything that is added, until the caller stops."""
    tail = Tail(path)
    whole = tail.more()
    yield "".join(whole.splitlines(keepends=True)[-count:]) if count is not None else whole
    while True:
        added = tail.more()
        if added:
            yield added
        else:
            time.sleep(POLL_S)
