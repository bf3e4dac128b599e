"""A deployment as an endpoint: where it answers, where its key lies, and whether its engine lives."""

from collections.abc import Mapping
from dataclasses import replace

from selfhost.core.errors import Busy, EnvironmentMissing, SelfhostError
from selfhost.core.lock import holder_of
from selfhost.core.secret import ensure_key
from selfhost.deploy.again import again
from selfhost.deploy.names import unknown
from selfhost.deploy.runtime import cluster_runtime, of_plan
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.engines.base import engine
from selfhost.runtimes.base import Runtime
from selfhost.runtimes.deployments import names
from selfhost.shapes.endpoint import Endpoint, Inspector, SecretRef
from selfhost.shapes.host import Known
from selfhost.shapes.plan import Plan

LISTENS_S = 5.0


class EngineInspector:
    """Lets smoke see whether the engine lives; satisfies shapes.endpoint.Inspector."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        self._runtime = runtime
        self._name = name

    def alive(self) -> bool:
        return self._runtime.inspect(self._name).alive


def describe_endpoint(plan: Plan, state: State) -> Endpoint:
    return Endpoint(
        name=plan.name,
        base_url=plan.base_url,
        model=plan.model.served_name,
        model_ref=plan.model.ref,
        engine=plan.build.engine,
        engine_version=plan.build.version,
        runtime=plan.runtime,
        device=plan.device_name,
        context=plan.context,
        key=SecretRef(str(state.key_file)) if takes_key(plan) else None,
        reasoning=plan.reasoning,
        model_dir=plan.model.path,
        chat=not (isinstance(plan.model.has_chat_template, Known) and not plan.model.has_chat_template.value),
    )


def takes_key(plan: Plan) -> bool:
    return bool(engine(plan.build.engine).KEY_VARIABLE)


def key_of(plan: Plan, state: State) -> str:
    """Empty for an engine that takes none: it listens on loopback and a network of its own only."""
    return ensure_key(state.key_file) if takes_key(plan) else ""


def endpoint_of(work: Workplace, name: str) -> tuple[Endpoint, str, Inspector]:
    """The endpoint of the deployment `name`, its key, and the eyes on its engine.

    Raises InputError for a name that was never started, EnvironmentMissing or Busy when nothing can answer there.
    """
    state = State(work.paths, name, say=work.say)
    plan, busy = state.plan(), holder_of(state.lock_file)
    starts = busy is not None and " up" in str(busy.get("command"))
    if plan is None:
        raise _starting(name, busy) if starts else _without_plan(work, state)
    runtime = of_plan(plan, paths=work.paths, system=work.system)
    seen = runtime.inspect(name)
    if seen.alive and runtime.info.cluster:  # for as long as this command lives
        plan = replace(plan, port=cluster_runtime(runtime).forward(name).port)
    elif seen.port is not None:
        plan = replace(plan, port=seen.port)
    if seen.alive and not (starts and not _listens(plan)):
        return describe_endpoint(plan, state), key_of(plan, state), EngineInspector(runtime, name)
    if starts:
        raise _starting(name, busy)
    raise EnvironmentMissing(f"{name} does not run: {seen.reason}", fix=_ways(state), id="RT008")


def _starting(name: str, busy: Mapping[str, object] | None) -> Busy:
    return Busy(
        f"{name} is still starting",
        why=f"`{busy.get('command')}` is at work on it (pid {busy.get('pid', '?')})." if busy is not None else "",
        fix=(f"look how far it is:\nselfhost status {name}",),
        id="RT007",
    )


def _without_plan(work: Workplace, state: State) -> SelfhostError:
    """Never started, or its plan was lost."""
    if state.name not in names(work.paths):
        return unknown(work.paths, state.name)
    return EnvironmentMissing(
        f"the plan of {state.name} is missing",
        why="Without it nobody knows which model and context its endpoint should have.",
        fix=_ways(state),
        id="RT015",
    )


def _ways(state: State) -> tuple[str, ...]:
    command = again(state)
    return (f"start it again:\n{command}" if command else f"start it as before, with --name {state.name}",)


def _listens(plan: Plan) -> bool:
    """Whether a server answers already; the `up` that holds the lock may be at its own checks."""
    from selfhost.core.http import Client  # at use: 187 ms

    with Client(plan.base_url) as client:
        return client.get("models", timeout_s=LISTENS_S).status != 0
