"""What the probes for the layers around this process look at, read once."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, pairs

Probe = Callable[["Marks"], str]
"""What proves a layer, in words; empty when nothing does."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What several probes look at, read once."""

    system: System
    mounts: tuple[tuple[str, str, str, str, str], ...]
    """Root, mount point, file system type, source and options of each line of /proc/self/mountinfo."""
    cgroup: str
    container: str
    """The `container` variable of process 1 or our own, and what systemd wrote about it."""
    environ: Mapping[str, str]
    """Of process 1: a login over SSH has lost what the place wrote there."""

    @classmethod
    def of(cls, system: System) -> "Marks":
        environ = pairs(glance(system, "/proc/1/environ").replace("\0", "\n"), separator="=")
        return cls(
            system=system,
            mounts=tuple(_mounts(glance(system, "/proc/self/mountinfo"))),
            cgroup=glance(system, "/proc/self/cgroup") + "\n" + glance(system, "/proc/1/cgroup"),
            container=glance(system, "/run/systemd/container")
            or environ.get("container", "")
            or glance(system, "/run/host/container-manager")
            or system.env.get("container", ""),
            environ=environ,
        )

    @property
    def root(self) -> tuple[str, str]:
        """Type of the root file system, and where it comes from, options included."""
        found = [(kind, f"{source} {options}") for _, point, kind, source, options in self.mounts if point == "/"]
        return found[-1] if found else ("", "")

    def identity_mount(self, pattern: str) -> str:
        """Source of /etc/hostname, /etc/hosts or /etc/resolv.conf that matches.

        Only these three: a host that runs Docker has lines with container ids too, for other containers.
        """
        points = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
        found = (root for root, point, *_ in self.mounts if point in points and re.search(pattern, root))
        return next(found, "")


def _mounts(mountinfo: str) -> Iterator[tuple[str, str, str, str, str]]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, tail = before.split(), after.split()
        if len(fields) >= 5 and len(tail) >= 2:
            yield fields[3], fields[4], tail[0], tail[1], tail[-1]


def variable(*variables: str) -> Probe:
    """A probe for environment variables that a host of machines or jobs sets; all of them must be there."""

    def probe(marks: Marks) -> str:
        for environment, where in ((marks.system.env, "environment"), (marks.environ, "environment of process 1")):
            values = [f"{name}={environment[name]}" for name in variables if environment.get(name)]
            if len(values) == len(variables):
                return f"{where} {' '.join(values)}"
        return ""

    return probe


def file(*paths: str) -> Probe:
    def probe(marks: Marks) -> str:
        return next((f"{path} exists" for path in paths if exists(marks.system, path)), "")

    return probe


def either(*probes: Probe) -> Probe:
    def probe(marks: Marks) -> str:
        return next((proof for one in probes if (proof := one(marks))), "")

    return probe


def is_mapped(system: System) -> bool:
    """Whether user 0 here is another user outside (user_namespaces(7))."""
    first = glance(system, "/proc/self/uid_map").split()
    return len(first) >= 3 and first[:3] != ["0", "0", "4294967295"]
