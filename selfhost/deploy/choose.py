"""What nobody asked for is chosen here: the model of a bare `up`, and the port."""

from selfhost.core.errors import Busy
from selfhost.deploy.runtime import of_state
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.cards import seen_by_engine
from selfhost.models.default import pick_default
from selfhost.models.hub import Hub
from selfhost.plan.command_line import command_line
from selfhost.runtimes.deployments import names
from selfhost.runtimes.ports import free_port
from selfhost.shapes.host import Host, Known
from selfhost.shapes.service import Service

DEFAULT_PORT = 8000
CHOSEN = "selfhost's choice"
"""Origin of a model that nobody named."""


def choose_model(work: Workplace, service: Service, host: Host, *, hub: Hub, here: bool) -> tuple[str, str]:
    """The model for `up` without one, with the reason: that of the deployment meant, or the best for this host."""
    before = _before(work, service) if here else None
    return before or _best(host, service, hub)


def _before(work: Workplace, service: Service) -> tuple[str, str] | None:
    if service.name:
        before = State(work.paths, service.name, say=work.say).service()
        if before is not None:
            return before.model, f"the model of the deployment {service.name}"
    for name in names(work.paths):
        before = State(work.paths, name, say=work.say).service()
        if before is not None and before.origins.get("model") == CHOSEN:
            return before.model, "an earlier `up` without a model chose it"
    return None


def _best(host: Host, service: Service, hub: Hub) -> tuple[str, str]:
    limit, cores = host.memory.limit, host.cpu.cores
    usable = () if service.device == "cpu" else host.usable_accelerators
    cards = [size.value for card in usable if isinstance(size := seen_by_engine(card), Known)]
    reachable = hub.reachable()
    return pick_default(
        memory_bytes=limit.value if isinstance(limit, Known) else 0,
        cores=cores.value if isinstance(cores, Known) else float(host.cpu.cores_online),
        accelerator_bytes=max(cards) if cards else None,
        hub_reachable=isinstance(reachable, Known) and reachable.value,
    )


def choose_port(work: Workplace, service: Service, state: State) -> int:
    """The port asked for, the one this deployment has or had, or the first free one from 8000 on.

    Only the default may move. Raises Busy naming the holder of an explicit port.
    """
    runtime = of_state(state, paths=work.paths, system=work.system)
    seen = runtime.inspect(service.name)
    for finding in seen.findings:
        work.say(finding)
    stays = service.port == seen.port or (service.port is None and seen.port not in work.taken_ports)
    if seen.alive and seen.port is not None and stays:
        return seen.port
    if service.port is not None:
        holder = runtime.port_holder(service.name, service.port)
        if holder is not None:
            raise port_taken(service, service.port, str(holder))
        return service.port
    before = state.plan()
    return free_port(before.port if before is not None else DEFAULT_PORT, without=work.taken_ports)


def port_taken(service: Service, port: int, holder: str) -> Busy:
    free = str(free_port(port + 1))
    return Busy(
        f"127.0.0.1:{port} is taken by {holder}",
        why="A port that was asked for is used or refused; selfhost does not move it.",
        fix=(
            "use another port:\n" + command_line("up", service, change={"port": free}),
            "or leave --port out for the first free one:\n" + command_line("up", service, change={"port": None}),
        ),
        id="RT004",
    )
