"""`logs`: the engine's own log, whole or followed across rotation and restarts."""

import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from selfhost.deploy.tail import Tail

POLL_S = 0.3
BLOCK_BYTES = 64 * 1024


def last_lines(path: Path, count: int | None) -> str:
    """The last `count` lines of a log, or all of it; read from the end, so a large log costs nothing."""
    if count is None:
        return path.read_text(encoding="utf-8", errors="replace")
    if count <= 0:
        return ""
    with path.open("rb") as stream:
        position = stream.seek(0, 2)
        data = b""
        while position > 0 and data.count(b"\n") <= count:
            step = min(BLOCK_BYTES, position)
            position -= step
            stream.seek(position)
            data = stream.read(step) + data
    return b"".join(data.splitlines(keepends=True)[-count:]).decode("utf-8", "replace")


def follow(path: Path, *, count: int | None) -> Iterator[str]:
    """The last lines, then everything that is added, until the deployment or the reader is gone."""
    tail = Tail(path)
    whole = tail.more()
    yield whole if count is None else "".join(whole.splitlines(keepends=True)[-count:]) if count else ""
    while path.parent.exists() and not reader_left():
        added = tail.more()
        if added:
            yield added
        else:
            time.sleep(POLL_S)


def reader_left() -> bool:
    """Whether stdout is a pipe that nobody reads any more: `logs -f | head -1` must end although no line comes."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
