"""Who this process is, and how much shared and locked memory it may have."""

import re

from selfhost.core.recorded import Recorded
from selfhost.core.system import System
from selfhost.hosts.glance import glance, number, pairs
from selfhost.shapes.host import Fact, Known, Unknown

_STATUS, _SHM = "/proc/self/status", "/dev/shm"  # noqa: S108 (the kernel's name of it, nothing is written)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def user(system: System) -> tuple[Fact[int], tuple[int, ...]]:
    """Effective user id and every group."""
    if isinstance(system, Recorded) and isinstance(system.ids.get("uid"), int):
        groups = (system.ids.get("gid"), *(system.ids.get("groups") or ()))
        return Known(system.ids["uid"], "ids"), tuple(dict.fromkeys(one for one in groups if isinstance(one, int)))
    lines = pairs(glance(system, _STATUS), separator=":")
    uids, gids, more = (lines.get(key, "").split() for key in ("Uid", "Gid", "Groups"))
    groups = tuple(dict.fromkeys(int(one) for one in (*gids[1:2], *more) if one.isdecimal()))
    uid = number(uids[1]) if len(uids) > 1 else None
    return (Unknown(f"{_STATUS} has no Uid") if uid is None else Known(uid, _STATUS)), groups


def shared_memory(system: System) -> Fact[int]:
    """Bytes of /dev/shm: as it was mounted, else as its file system says."""
    mounted = [line for line in glance(system, "/proc/self/mountinfo").splitlines() if f" {_SHM} " in line]
    size = re.search(r"\bsize=(\d+)([kmg]?)\b", mounted[-1]) if mounted else None
    if size:
        return Known(int(size[1]) * _UNITS[size[2]], f"/proc/self/mountinfo, {_SHM}")
    try:
        total, _ = system.disk(_SHM)
        # A place that does not exist is answered for by the folder above it.
        above = None if mounted or not isinstance(system, Recorded) else _disk(system, "/")
    except OSError:
        return Unknown(f"{_SHM} is not here")
    return Unknown(f"{_SHM} was not looked at") if total == above else Known(total, _SHM)


def _disk(system: System, path: str) -> int | None:
    try:
        return system.disk(path)[0]
    except OSError:
        return None


def locked_memory(system: System) -> Fact[int]:
    """Bytes that may be locked, -1 without a limit."""
    path = "/proc/self/limits"
    found = re.search(r"(?m)^Max locked memory\s+(\S+)", glance(system, path))
    if not found:
        return Unknown(f"{path} has no line for it")
    if found[1] == "unlimited":
        return Known(-1, path)
    limit = number(found[1])
    return Unknown(f"{path} says {found[1]}") if limit is None else Known(limit, path)
