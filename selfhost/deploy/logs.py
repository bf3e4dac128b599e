"""`logs`: the engine's own log, whole or followed across rotation and restarts."""

import select
import sys
import time
from collections.abc import Iterator

from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.deploy.runtime import of_state
from selfhost.deploy.state import State
from selfhost.runtimes.base import Log

POLL_S = 0.3


def log_of(state: State, *, paths: Paths, system: LocalSystem) -> Log:
    """The log of the engine that was started last, wherever its runtime keeps it."""
    return of_state(state, paths=paths, system=system).log(state.name)


def follow(log: Log, state: State, *, count: int | None) -> Iterator[str]:
    """The last lines, then everything that is added, until the deployment or the reader is gone."""
    whole = log.more()
    yield whole if count is None else "".join(whole.splitlines(keepends=True)[-count:]) if count else ""
    while state.folder.exists() and not reader_left():
        added = log.more()
        if added:
            yield added
        else:
            time.sleep(POLL_S)


def reader_left() -> bool:
    """Whether stdout is a pipe that nobody reads any more: `logs -f | head -1` must end although no line comes."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
