"""The cgroup directories that bind this process: its own and every ancestor that it can see, versions 1 and 2.

A limit may stand at any level, and a container may have no limit of its own while its pod or slice has one.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, number
from selfhost.shapes.host import Fact, Known, Unknown

_DEFAULT = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class Level:
    """One cgroup directory. `version` 1 or 2 decides its files' names."""

    version: int
    path: str


@dataclass(frozen=True, slots=True)
class _Mount:
    version: int
    root: str
    """The cgroup that is visible at `point`."""
    point: str


def levels(system: System, controller: str) -> tuple[Level, ...]:
    """Directories of `controller` (`cpu`, `memory`, `cpuset`, `pids`), own first, up to the mount. Both versions."""
    found: dict[Level, None] = {}
    for mount in _mounts(system, controller):
        for path in _climb(mount, _own(system, mount.version, controller)):
            found[Level(mount.version, path)] = None
    return tuple(found)


def pids_limit(system: System) -> Fact[int]:
    """How many processes and threads may exist here: the smallest `pids.max` of all levels, or the kernel's own."""
    bounds: list[tuple[int, str]] = []
    for level in levels(system, "pids"):
        path = f"{level.path}/pids.max"
        limit = number(glance(system, path))  # `max` is none, and the root cgroup has no such file
        if limit is not None and limit >= 0:
            bounds.append((limit, path))
    if not bounds:
        kernel = number(glance(system, "/proc/sys/kernel/pid_max"))
        if kernel is None:
            return Unknown("no pids.max limits it, and /proc/sys/kernel/pid_max cannot be read")
        return Known(kernel, "/proc/sys/kernel/pid_max, no pids.max below it")
    limit, how = min(bounds)
    return Known(limit, how)


def _own(system: System, version: int, controller: str) -> str:
    """Our path as /proc/self/cgroup names it, relative to our cgroup namespace.

    On a hybrid machine both versions have a line, and their paths differ.
    """
    for line in glance(system, "/proc/self/cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        unified = hierarchy == "0" and not controllers
        if unified if version == 2 else controller in controllers.split(","):
            return path or "/"
    return "/"


def _mounts(system: System, controller: str) -> tuple[_Mount, ...]:
    """From /proc/self/mountinfo (proc(5)); without it the places where distributions put them."""
    text = glance(system, "/proc/self/mountinfo")
    found = tuple(_parse(text, controller))
    if found:
        return found
    unified = (_Mount(2, "/", _DEFAULT), _Mount(2, "/", f"{_DEFAULT}/unified"))
    guesses = [*unified, *(_Mount(1, "/", f"{_DEFAULT}/{name}") for name in _v1_names(controller))]
    return tuple(mount for mount in guesses if exists(system, mount.point))


def _v1_names(controller: str) -> tuple[str, ...]:
    return ("cpu", "cpu,cpuacct", "cpuacct,cpu") if controller == "cpu" else (controller,)


def _parse(mountinfo: str, controller: str) -> Iterator[_Mount]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, tail = before.split(), after.split()
        if len(fields) < 5 or not tail:
            continue
        root, point = fields[3], fields[4].replace("\\040", " ")
        if tail[0] == "cgroup2":
            yield _Mount(2, root, point)
        elif tail[0] == "cgroup" and controller in tail[-1].split(","):
            yield _Mount(1, root, point)


def _climb(mount: _Mount, own: str) -> Iterator[str]:
    """From our own directory below the mount up to the mount point itself.

    Where the mount shows another part of the tree than the one our path is counted from (a root of `/../..`, a path
    outside our namespace), our directory cannot be found by name and only the mount point is read. A directory that
    the mount does not show has no files to read, which does no harm.
    """
    below = _below(mount.root, own)
    path = posixpath.normpath(f"{mount.point}/{below}") if below else mount.point
    while path != mount.point:
        yield path
        path = posixpath.dirname(path)
    yield mount.point


def _below(root: str, own: str) -> str:
    if ".." in root.split("/") or ".." in own.split("/"):
        return ""
    if root == "/":
        return own.strip("/")
    return own[len(root) :].strip("/") if own == root or own.startswith(root + "/") else ""
