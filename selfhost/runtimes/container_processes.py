"""The processes of a container, where they are processes of this machine."""

from pathlib import Path

from selfhost.core import processes
from selfhost.core.processes import ProcessRef
from selfhost.runtimes.container_client import Object
from selfhost.runtimes.containers import seconds

_SLACK_S = 30.0


def main_process(found: Object) -> ProcessRef | None:
    """The container's first process; None when its number means another process here, or none.

    An engine in a virtual machine, or one whose socket is handed into a container, counts in another table.
    """
    state = found.get("State") or {}
    pid = state.get("Pid")
    if not isinstance(pid, int) or pid <= 0 or state.get("Status") not in ("running", "paused", "initialized"):
        return None
    seen = processes.stat(pid)
    if seen is None or not _is_it(pid, str(found.get("Id") or ""), seconds(str(state.get("StartedAt") or ""))):
        return None
    return processes.ref(seen)


def processes_of(found: Object) -> tuple[ProcessRef, ...]:
    """The first process and all that came from it, oldest first."""
    main = main_process(found)
    if main is None:
        return ()
    among = processes.table()
    pids = {main.pid} | processes.descendants({main.pid}, among)
    here = (among[pid] for pid in pids if pid in among)
    return tuple(processes.ref(one) for one in sorted(here, key=lambda one: (one.start_ticks, one.pid)))


def _is_it(pid: int, container: str, started_at: float) -> bool:
    """By the control group, which carries the container's id; where it has none of its own, by when it began."""
    try:
        if container in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"):
            return True
        began = Path(f"/proc/{pid}").stat().st_ctime
    except OSError:
        return False
    return abs(began - started_at) < _SLACK_S
