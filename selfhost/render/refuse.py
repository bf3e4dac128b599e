"""What a target has no words for: refused by name, never left out."""

from collections.abc import Iterator

from selfhost.core.errors import InputError
from selfhost.shapes.workload import EnvSource, Workload


def refuse_unsayable(workload: Workload, target: str) -> None:
    """Raises InputError for the first part of `workload` that files of `target` would lose."""
    for part in (*_anywhere(workload), *(_in_quadlet(workload) if target == "quadlet" else ())):
        raise InputError(
            f"{part} cannot be written as {target}",
            why="The file would say less than what is meant, and something else would run.",
            fix=("leave it out, or write it as a process or for another runtime:\nselfhost render --help",),
            id="CF085",
        )


def _anywhere(workload: Workload) -> Iterator[str]:
    texts = (*workload.argv, *workload.env, *workload.env.values(), *workload.labels.values())
    if any("\0" in text for text in texts):
        yield "a text with a NUL byte"
    if "" in workload.env or any("=" in name for name in workload.env):
        yield "a variable whose name holds `=` or nothing"
    if workload.pod is not None or workload.job:
        yield "a pod or a batch job"
    if workload.opaque:
        yield f"`{workload.opaque[0]}`, whose value only a run knows,"
    if any(source is not EnvSource.TEXT for source in workload.env_sources.values()):
        yield "a variable whose value is not in the plan"
    if len(workload.entrypoint or ()) > 1:
        yield "an entrypoint of several words"
    if workload.health is not None and not workload.health.test:
        yield "a health check without a command"
    yield from _devices_and_mounts(workload)


def _devices_and_mounts(workload: Workload) -> Iterator[str]:
    for request in workload.requests:
        if request.driver == "cdi":
            yield "a request with the driver cdi (name the CDI device itself)"
        if bool(request.ids) == (request.count is not None) or request.capabilities != ("gpu",):
            yield "a device request that has not exactly one of a count and ids, and the capability gpu,"
    for mount in workload.mounts:
        if mount.kind not in ("bind", "volume", "tmpfs") or mount.medium:
            yield f"a mount of the kind {mount.kind}"
        if set("\n\r\0") & {*mount.source, *mount.target}:
            yield f"the path {mount.source!r}"


def _in_quadlet(workload: Workload) -> Iterator[str]:
    if "" in workload.argv or (workload.health is not None and "" in workload.health.test):
        yield "an empty argument (Quadlet stops reading a line there)"
    if workload.requests:
        yield "a device request of Docker's"
    if workload.restart == "always":
        yield "the restart policy `always`"
    if workload.entrypoint == ():
        yield "an emptied entrypoint"
    if workload.runtime or workload.hooks_dirs:
        yield "an OCI runtime of its own"
