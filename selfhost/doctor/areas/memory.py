"""Memory and limits: control groups, /dev/shm, locked memory, processes."""

from collections.abc import Iterator
from typing import Final

from selfhost.doctor.area import CONTAINERS, Seen, area
from selfhost.shapes.finding import Finding, RunOn, Severity
from selfhost.shapes.host import Known
from selfhost.shapes.surroundings import Surroundings
from selfhost.shapes.units import format_bytes

_GIB: Final = 1 << 30
_SMALL: Final = 4 * _GIB
_DOCKER_SHM: Final = 64 << 20
_FEW_PROCESSES: Final = 1024


@area("memory", order=70)
def memory(seen: Seen) -> None:
    limit, total, around = seen.host.memory.limit, seen.host.memory.total, seen.host.surroundings
    if not isinstance(limit, Known):
        seen.unknowns.append(f"memory: {limit.reason}")
    else:
        seen.calm = f"{format_bytes(limit.value)} for us"
        if isinstance(total, Known) and limit.value < total.value:
            seen.calm += f" of {format_bytes(total.value)}"
            seen.findings.extend(_small(limit, total.value, _place(seen)))
    if around is not None:
        seen.findings.extend(_shm(seen, around))
        seen.findings.extend(_memlock(seen, around))
        seen.findings.extend(_pids(seen, around))


def _place(seen: Seen) -> RunOn:
    inside = any(label in CONTAINERS or label == "pod" for label in seen.labels)
    return RunOn.CONTAINER_HOST if inside else RunOn.HERE


def _small(limit: Known[int], total: int, where: RunOn) -> Iterator[Finding]:
    if limit.value >= _SMALL or total < 2 * limit.value:
        return
    yield Finding(
        id="HX401",
        severity=Severity.WARNING,
        title=f"only {format_bytes(limit.value)} of {format_bytes(total)} may be used here",
        evidence=f"{limit.how}: {limit.value}",
        why="Layer: control group. An engine alone takes several gigabytes while it loads, and is killed at the limit.",
        fix=("start this place with a higher limit:\ndocker run --memory 16g …",),
        run_on=where,
        source="https://docs.kernel.org/admin-guide/cgroup-v2.html",
    )


def _shm(seen: Seen, around: Surroundings) -> Iterator[Finding]:
    """One card needs none: its processes share nothing large."""
    shm = around.shm_bytes
    if len(seen.host.usable_accelerators) < 2 or not isinstance(shm, Known) or shm.value > _DOCKER_SHM:
        return
    yield Finding(
        id="HX402",
        severity=Severity.WARNING,
        title=f"shared memory (/dev/shm) is {format_bytes(shm.value)}, too little for several cards",
        evidence=f"{shm.how}: {shm.value}",
        why="Layer: container. Processes of several cards talk through /dev/shm; 64 MiB is Docker's default and "
        "ends with a bus error or a hang.",
        fix=("start the container again with more:\ndocker run --shm-size 16g …",),
        run_on=_place(seen),
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#shared-memory",
    )


def _memlock(seen: Seen, around: Surroundings) -> Iterator[Finding]:
    """Only where there is InfiniBand: nothing else here locks much."""
    lock = around.memlock_bytes
    if not seen.look.infiniband or not isinstance(lock, Known) or lock.value < 0 or lock.value > _GIB:
        return
    yield Finding(
        id="HX403",
        severity=Severity.WARNING,
        title=f"only {format_bytes(lock.value)} may be locked, and there is InfiniBand",
        evidence=f"{lock.how}: {lock.value}",
        why="Layer: limits. Buffers of InfiniBand are locked memory; registering them fails at this limit.",
        fix=("raise it where this is started:\ndocker run --ulimit memlock=-1 …",),
        run_on=_place(seen),
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    )


def _pids(seen: Seen, around: Surroundings) -> Iterator[Finding]:
    pids = around.pids_limit
    if not isinstance(pids, Known) or not 0 < pids.value < _FEW_PROCESSES:
        return
    yield Finding(
        id="HX404",
        severity=Severity.WARNING,
        title=f"only {pids.value} processes and threads may run here",
        evidence=f"{pids.how}: {pids.value}",
        why="Layer: control group. An engine starts some hundred threads a card and fails in odd places at the limit.",
        fix=("start this place with a higher limit:\ndocker run --pids-limit 8192 …",),
        run_on=_place(seen),
        source="https://docs.kernel.org/admin-guide/cgroup-v2.html#pid",
    )
