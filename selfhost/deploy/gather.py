"""Facts in, plan out: look at the machine, find the model, choose a port, decide. Changes nothing on this machine."""

from dataclasses import dataclass, replace

from selfhost.core.errors import Busy, InputError
from selfhost.core.paths import slug
from selfhost.deploy.state import State
from selfhost.deploy.wording import naming
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.detect import detect
from selfhost.hosts.placement import Placement, gate
from selfhost.models.catalog import pick_default
from selfhost.models.hub import Hub
from selfhost.models.resolve import resolve
from selfhost.plan.decide import decide
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service

DEFAULT_PORT = 8000
CHOSEN = "selfhost's choice"
"""Origin of a model that nobody named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that was learnt and decided before anything is touched."""

    service: Service
    host: Host
    placement: Placement
    model: Model
    plan: Plan
    model_reason: str = ""


def look(work: Workplace) -> Host:
    """Detect this machine, with the disks that a deployment writes to."""
    return detect(work.system, disk_paths=(str(work.paths.cache), str(work.paths.state)))


def choose_model(work: Workplace, host: Host, placement: Placement) -> tuple[str, str]:
    """The model for `up` without one: that of an earlier such `up`, or the best for this host; with the reason."""
    for name in _names(work):
        service = State(work.paths, name, say=work.say).service()
        if service is not None and service.origins.get("model") == CHOSEN:
            return service.model, "an earlier `up` without a model chose it"
    limit = host.memory.limit
    cores = host.cpu.cores
    cards = [card.memory_total.value for card in placement.accelerators if isinstance(card.memory_total, Known)]
    reachable = Hub(work.env).reachable()
    return pick_default(
        memory_bytes=limit.value if isinstance(limit, Known) else 0,
        cores=cores.value if isinstance(cores, Known) else float(host.cpu.cores_online),
        accelerator_bytes=max(cards) if cards else None,
        hub_reachable=isinstance(reachable, Known) and reachable.value,
    )


def _names(work: Workplace) -> tuple[str, ...]:
    from selfhost.runtimes.registry import names

    return names(work.paths)


def name_of(service: Service) -> str:
    """The deployment's name: the one asked for, or made from the model."""
    return service.name or slug(service.model.partition("@")[0]) or "model"


def plan_for(work: Workplace, service: Service, *, host: Host | None = None) -> Gathered:
    """Everything that `up` would do for `service`, decided and not done."""
    host = look(work) if host is None else host
    with naming(model=service.model, name=service.name):
        placement = gate(host, service.device)
    reason = ""
    if not service.model:
        model, reason = choose_model(work, host, placement)
        service = replace(service, model=model, origins={**service.origins, "model": CHOSEN})
    model_facts = resolve(service.model, env=work.env, paths=work.paths, hub=Hub(work.env))
    service = replace(service, name=name_of(service))
    state = State(work.paths, service.name, say=work.say)
    _refuse_other_model(state, service)
    port = choose_port(work, service, state)
    plan = decide(host=host, model=model_facts, service=service, port=port)
    return Gathered(service=service, host=host, placement=placement, model=model_facts, plan=plan, model_reason=reason)


def _refuse_other_model(state: State, service: Service) -> None:
    """Two folders of the same base name must not silently replace each other."""
    before = state.service()
    if before is not None and before.model != service.model and "name" not in service.origins:
        raise InputError(
            f"`{service.name}` already names a deployment of {before.model}",
            why="A deployment keeps its model; another model under the same name would replace it.",
            fix=(
                f"give this one a name of its own:\nselfhost up {service.model} --name {service.name}-2",
                f"or take the other down first:\nselfhost down {service.name}",
            ),
            id="CF010",
        )


def choose_port(work: Workplace, service: Service, state: State) -> int:
    """The port asked for, the one this deployment had, or the first free one from 8000 on.

    Only the default may move. Raises Busy naming the holder of an explicit port.
    """
    runtime = ProcessRuntime(work.paths, work.system)
    before = state.plan()
    seen = runtime.inspect(service.name)
    if seen.alive and seen.port is not None and service.port in (None, seen.port):
        return seen.port
    if service.port is not None:
        holder = runtime.port_holder(service.port)
        if holder is not None:
            raise Busy(
                f"127.0.0.1:{service.port} is taken by {holder}",
                why="A port that was asked for is used or refused; selfhost does not move it.",
                fix=(
                    f"use another port:\nselfhost up {service.model} --port {runtime.free_port(service.port + 1)}",
                    f"or leave --port out for the first free one:\nselfhost up {service.model}",
                ),
                id="RT004",
            )
        return service.port
    start = before.port if before is not None else DEFAULT_PORT
    return runtime.free_port(start)
