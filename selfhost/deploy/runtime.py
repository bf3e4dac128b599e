"""Which runtime a deployment has, by its plan; what an earlier plan started may be another one's."""

from typing import TYPE_CHECKING, cast

from selfhost.core.errors import SelfhostError
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.deploy.state import State
from selfhost.runtimes.all import RUNTIMES, runtime_of
from selfhost.runtimes.base import ContainerRuntime, EngineState, Runtime
from selfhost.shapes.plan import Plan

if TYPE_CHECKING:
    from selfhost.runtimes.kubernetes import KubernetesRuntime

PROCESS = "process"


def of_plan(plan: Plan | None, *, paths: Paths, system: LocalSystem) -> Runtime:
    """The runtime that `plan` is for; without one, processes, which are found even when every record is lost."""
    return runtime_of(plan.runtime if plan is not None else PROCESS, paths=paths, system=system)


def of_state(state: State, *, paths: Paths, system: LocalSystem) -> Runtime:
    """The runtime of the engine that was started last; where its plan is lost, the one that its files are for."""
    plan = state.plan()
    name = plan.runtime if plan is not None else written_for(state) or PROCESS
    return runtime_of(name, paths=paths, system=system)


def written_for(state: State) -> str:
    """The runtime that the newest of the written files starts from; empty without any."""
    found = [
        (path.stat().st_mtime_ns, name)
        for pattern, name in _FILES.items()
        for path in state.bundle.glob(pattern)
        if path.is_file()
    ]
    return max(found)[1] if found else ""


def container_runtime(runtime: Runtime) -> ContainerRuntime:
    """The same runtime, as one that runs images. Raises ValueError for another: our mistake."""
    if not runtime.info.containers:
        raise ValueError(f"{runtime.info.name} runs no images")
    return cast("ContainerRuntime", runtime)


def cluster_runtime(runtime: Runtime) -> "KubernetesRuntime":
    """The same runtime, as the one of clusters. Raises ValueError for another: our mistake."""
    if not runtime.info.cluster:
        raise ValueError(f"{runtime.info.name} is no cluster")
    return cast("KubernetesRuntime", runtime)


def runtimes_with(state: State, *, paths: Paths, system: LocalSystem) -> tuple[Runtime, ...]:
    """The runtimes that have something of this deployment; where its plan is lost, every one is asked.

    Raises SelfhostError when the one that it was last started by does not answer: then nobody knows.
    """
    plan = state.plan()
    names = [plan.runtime] if plan is not None else list(RUNTIMES)
    last = plan.runtime if plan is not None else written_for(state)
    found = []
    for name in names:
        runtime = runtime_of(name, paths=paths, system=system)
        try:
            if plan is not None or runtime.processes(state.name) or runtime.inspect(state.name).state in _SOMETHING:
                found.append(runtime)
        except SelfhostError:  # another engine that is not installed or does not answer has nothing to show
            if name == last:
                raise
    return tuple(found)


_FILES = {
    "compose.yaml": "docker",
    "run.sh": "podman",
    "*.container": "quadlet",
    "serve.sh": "process",
    "manifests.yaml": "kubernetes",
}
_SOMETHING = (EngineState.RUNNING, EngineState.STARTING, EngineState.EXITED)
