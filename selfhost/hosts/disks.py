"""Free space of the file systems that somebody asks about."""

from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.shapes.host import Disk


def read(system: System, paths: Sequence[str]) -> tuple[Disk, ...]:
    """One entry for each path that could be asked about, under the name it was asked by. Bytes."""
    found: list[Disk] = []
    for path in dict.fromkeys(paths):
        try:
            total, free = system.disk(path)
        except OSError:
            continue  # no entry is the answer: a size of zero would be a lie
        found.append(Disk(path=path, total=total, free=free))
    return tuple(found)
