"""Shared memory between the ranks of one engine."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Form, Workload
from selfhost.visibility import paste
from selfhost.visibility.engine_size import processes, spreads
from selfhost.visibility.rule import Found, place, rule

SOURCE = "https://docs.vllm.ai/en/latest/deployment/docker.html"
SHM = "/dev/shm"  # noqa: S108 - the place, not a file of ours
ENOUGH_BYTES = 1024**3
_CONTAINERS = (Form.COMPOSE, Form.RUN, Form.QUADLET, Form.INSPECT, Form.POD)


@rule("DV051", Severity.ERROR, source=SOURCE)
def too_little_shared_memory(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    count = processes(workload)
    if workload.form not in _CONTAINERS or count < 2 or not spreads(workload):
        return
    if workload.ipc not in ("", "private", "shareable") or (workload.pod is not None and workload.pod.host_ipc):
        return
    size, key = _size(workload)
    if size is None or size >= ENOUGH_BYTES:
        return
    yield Found(
        title=f"{workload.label} runs {count} ranks with {size // 1024**2} MiB of shared memory",
        place=place(workload, key),
        evidence=f"{SHM} has {size // 1024**2} MiB" + ("" if key != "name" else ", the default"),
        why="The ranks of one engine hand data to each other through /dev/shm. NCCL fills 64 MiB at once: `Error while "
        "creating shared memory segment /dev/shm/nccl-…`, `No space left on device`.",
        fix=(f"give it more:\n{paste.shared_memory(workload)}",),
    )


DEFAULT_BYTES = 64 * 1024**2


def _size(workload: Workload) -> tuple[int | None, str]:
    """Bytes of /dev/shm and the key of what says so; None where it is large or not known."""
    for mount in workload.mounts:
        if mount.target.rstrip("/") == SHM:
            return mount.size_bytes, mount.key or "mounts"
    if workload.shm_bytes is not None:
        return (None if workload.shm_bytes <= 0 else workload.shm_bytes), "shm_size"
    return DEFAULT_BYTES, "name"
