"""Which deployments there are, by their folders."""

from pathlib import Path

from selfhost.core.lock import holder_of
from selfhost.core.names import is_name
from selfhost.core.paths import Paths

RECORDED = ("service.json", "plan.json", "run/engine.json", "run/launch.json")
"""Files of which one makes a folder a deployment; a lock, a journal or a key alone is what a refused `up` leaves."""


def names(paths: Paths) -> tuple[str, ...]:
    """Every deployment whose engine was started, or that a command is at work on, in order.

    Folders with other names are not ours.
    """
    try:
        entries = sorted(entry for entry in paths.deployments.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(entry.name for entry in entries if is_name(entry.name) and entry.is_dir() and _recorded(entry))


def _recorded(folder: Path) -> bool:
    return any((folder / name).exists() for name in RECORDED) or holder_of(folder / ".lock") is not None
