"""Every runtime by its name."""

from collections.abc import Callable, Mapping

from selfhost.core.errors import InputError
from selfhost.core.paths import Paths
from selfhost.core.system import System
from selfhost.runtimes.base import Runtime


def _process(paths: Paths, system: System) -> Runtime:
    from selfhost.runtimes.process import ProcessRuntime

    return ProcessRuntime(paths, system)


def _docker(paths: Paths, system: System) -> Runtime:
    from selfhost.runtimes.docker import docker_runtime

    return docker_runtime(paths, system)


def _podman(paths: Paths, system: System) -> Runtime:
    from selfhost.runtimes.podman import podman_runtime

    return podman_runtime(paths, system)


def _quadlet(paths: Paths, system: System) -> Runtime:
    from selfhost.runtimes.quadlet import QuadletRuntime

    return QuadletRuntime(paths, system)


def _kubernetes(paths: Paths, system: System) -> Runtime:
    from selfhost.runtimes.kubernetes import KubernetesRuntime

    return KubernetesRuntime(paths, system)


RUNTIMES: Mapping[str, Callable[[Paths, System], Runtime]] = {
    "process": _process,
    "docker": _docker,
    "podman": _podman,
    "quadlet": _quadlet,
    "kubernetes": _kubernetes,
}


def runtime_of(name: str, *, paths: Paths, system: System) -> Runtime:
    """Asks nobody yet. Raises InputError for a name that is none."""
    if name not in RUNTIMES:
        raise InputError(
            f"there is no runtime `{name}`",
            why=f"There are {', '.join(RUNTIMES)}.",
            fix=("take one of them:\nselfhost up --runtime process",),
            id="RT086",
        )
    return RUNTIMES[name](paths, system)


def is_container(name: str) -> bool:
    """Whether engines run in containers under it."""
    return name != "process"
