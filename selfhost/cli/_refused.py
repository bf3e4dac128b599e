"""What the operating system refuses is the machine's state, not our bug: a full disk, a folder without rights."""

import errno
import shlex
from pathlib import Path
from typing import Final

from selfhost.core.errors import EnvironmentMissing

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)


def refused(error: Exception) -> EnvironmentMissing | None:
    """The error in words when the system refused a path; None when it is none of that kind."""
    if not isinstance(error, OSError) or error.errno not in (*_FULL, *_REFUSED, errno.ENOENT):
        return None
    path = str(error.filename or "")
    place = _nearest(path)
    if error.errno in _FULL:
        return EnvironmentMissing(
            f"the disk of {place or 'the state folder'} is full",
            why=f"{error.strerror}: {path or 'the write that failed has no name'}.",
            fix=(
                f"free some room there:\ndf -h {shlex.quote(place or '.')}",
                "or use another disk, with a path of yours:\nexport XDG_STATE_HOME=/mnt/large/state",
            ),
            id="RT013",
        )
    if not path or (error.errno == errno.ENOENT and Path(path).parent.exists()):
        return None  # a file that we expected: that is a fault of ours
    return EnvironmentMissing(
        f"{path} may not be used: {error.strerror}",
        why="It belongs to another user, is of another kind than expected, or its file system is read-only.",
        fix=(f"look at its owner and mode:\nls -ld {shlex.quote(place)}",),
        id="RT014",
    )


def _nearest(path: str) -> str:
    """The nearest folder above `path` that is there."""
    if not path:
        return ""
    place = Path(path)
    while place != place.parent and not _is_there(place):
        place = place.parent
    return str(place)


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:
        return False
