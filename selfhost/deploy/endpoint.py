"""A deployment as an endpoint: where it answers, where its key lies, and whether its engine lives."""

from dataclasses import replace

from selfhost.core.secret import ensure_key
from selfhost.deploy.names import unknown
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.endpoint import Endpoint, Inspector, SecretRef
from selfhost.shapes.plan import Plan


class EngineInspector:
    """Lets smoke see whether the engine lives; satisfies shapes.endpoint.Inspector."""

    def __init__(self, runtime: ProcessRuntime, name: str) -> None:
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
        key=SecretRef(str(state.key_file)),
        reasoning=plan.reasoning,
        model_dir=plan.model.path,
    )


def endpoint_of(work: Workplace, name: str) -> tuple[Endpoint, str, Inspector]:
    """The endpoint of the deployment `name`, its key, and the eyes on its engine. Raises InputError."""
    state = State(work.paths, name, say=work.say)
    plan = state.plan()
    if plan is None:
        raise unknown(work.paths, name)
    runtime = ProcessRuntime(work.paths, work.system)
    seen = runtime.inspect(name)
    if seen.alive and seen.port is not None:
        plan = replace(plan, port=seen.port)
    return describe_endpoint(plan, state), ensure_key(state.key_file), EngineInspector(runtime, name)
