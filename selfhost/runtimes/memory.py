"""What processes occupy of this machine's memory."""

import os
from collections.abc import Iterable
from pathlib import Path

from selfhost.core.processes import ProcessRef


def memory_bytes(members: Iterable[ProcessRef]) -> int | None:
    """Sum over `members`, shared pages counted once where the kernel says so; None when none of them can be seen."""
    sizes = [size for size in (_proportional(one.pid) or _resident(one.pid) for one in members) if size is not None]
    return sum(sizes) if sizes else None


def _proportional(pid: int) -> int | None:
    """PSS of /proc/PID/smaps_rollup (Linux 4.14 and later): a page that n processes share counts as 1/n for each."""
    try:
        lines = Path("/proc", str(pid), "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)


def _resident(pid: int) -> int | None:
    """RSS of /proc/PID/statm, in pages; shared pages count for each process."""
    try:
        return int(Path("/proc", str(pid), "statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None
