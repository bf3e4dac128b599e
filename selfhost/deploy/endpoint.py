"""A deployment as an endpoint: where it answers, where its key lies, and what may be seen of its engine."""

from pathlib import Path
from typing import Protocol

from selfhost.core.errors import InputError
from selfhost.core.paths import Paths
from selfhost.core.secret import read_key
from selfhost.core.system import LocalSystem
from selfhost.deploy.state import State
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.endpoint import Endpoint, Inspector, SecretRef
from selfhost.shapes.finding import Finding
from selfhost.shapes.plan import Plan

LOG_BYTES = 16 * 1024**2
"""How much of the end of a log smoke may look at."""


class EngineInspector:
    """Lets smoke see whether the engine lives and what it logged; satisfies shapes.endpoint.Inspector."""

    def __init__(self, runtime: ProcessRuntime, name: str) -> None:
        self._runtime = runtime
        self._name = name

    def alive(self) -> bool:
        return self._runtime.inspect(self._name).alive

    def log(self) -> str:
        path = self._runtime.logs(self._name)
        if not path.exists():
            return ""
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LOG_BYTES))
            return stream.read().decode("utf-8", "replace")


class Places(Protocol):
    """The part of a command's context that is needed here."""

    @property
    def paths(self) -> Paths: ...

    @property
    def system(self) -> LocalSystem: ...

    def say(self, finding: Finding) -> None: ...


def describe_endpoint(plan: Plan, state: State) -> Endpoint:
    return Endpoint(
        name=plan.name,
        base_url=f"http://{plan.address}:{plan.port}/v1",
        model=plan.model.served_name,
        engine=plan.build.engine,
        engine_version=plan.build.version,
        runtime=plan.runtime,
        device=plan.device_name,
        context=plan.context,
        key=SecretRef(str(state.key_file)),
        reasoning=plan.reasoning,
        model_dir=plan.model.path,
    )


def endpoint_of(context: Places, name: str) -> tuple[Endpoint, str, Inspector]:
    """The endpoint of the deployment `name`, its key, and the eyes on its engine. Raises InputError."""
    state = State(context.paths, name, say=context.say)
    plan = state.plan()
    if plan is None or not Path(state.key_file).exists():
        raise unknown_deployment(context.paths, name)
    runtime = ProcessRuntime(context.paths, context.system)
    return describe_endpoint(plan, state), read_key(state.key_file), EngineInspector(runtime, name)


def the_only(paths: Paths, name: str | None) -> str:
    """`name`, or the one deployment there is. Raises InputError when there is none or more than one."""
    from selfhost.runtimes.registry import names

    if name:
        return name
    known = names(paths)
    if len(known) == 1:
        return known[0]
    if not known:
        raise InputError(
            "nothing is deployed here",
            fix=("start something:\nselfhost up",),
            id="RT002",
        )
    raise InputError(
        f"{len(known)} deployments are here; which one?",
        fix=(f"name it, one of: {', '.join(known)}",),
        id="RT003",
    )


def unknown_deployment(paths: Paths, name: str) -> InputError:
    import difflib

    from selfhost.runtimes.registry import names

    known = names(paths)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
    fix = [f"perhaps {' or '.join(f'`{n}`' for n in near)}"] if near else []
    fix.append("see what is here:\nselfhost status")
    return InputError(f"nothing named `{name}` is deployed here", fix=fix, id="RT001")
