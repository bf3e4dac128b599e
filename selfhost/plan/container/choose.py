"""Whether the engine runs as a process or in a container, and of which container engine."""

from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.versions import numbers
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.plan.container.injection import way_in
from selfhost.plan.container.surrounding import engine_seen
from selfhost.plan.devices import Devices
from selfhost.plan.origin import by
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Decision, EngineBuild, Evidence, Image
from selfhost.shapes.service import Service
from selfhost.shapes.surroundings import Engine

PROCESS, CONTAINER, KUBERNETES = "process", "container", "kubernetes"
CONTAINER_ENGINES = {"docker": "docker", "podman": "podman", "quadlet": "podman"}
"""The container engine that a runtime's files are for."""
RUNTIMES = (PROCESS, *CONTAINER_ENGINES, KUBERNETES)
_QUADLET_SINCE = (4, 7)
_QUADLET = "https://docs.podman.io/en/latest/markdown/podman-systemd.unit.5.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`name` as in Plan.runtime."""

    name: str
    decision: Decision


def choose_runtime(
    *, host: Host, devices: Devices, build: EngineBuild, image: Image | None, service: Service, why_no_process: str
) -> Choice:
    """What was asked for, else a container engine that hands the cards in, else a process.

    Raises InputError for what cannot be.
    """
    if service.runtime is not None:
        return _asked(service.runtime, host=host, build=build, service=service, why_no_process=why_no_process)
    told: list[str] = []
    if devices.cards and (image is not None or service.image):
        for kind in ("docker", "podman"):
            found = _by_engine(kind, host=host, devices=devices, service=service, told=told)
            if found is not None:
                return found
    if why_no_process:
        return Choice(name=CONTAINER, decision=_no_engine(build, devices, why_no_process, told))
    return Choice(name=PROCESS, decision=_process(devices, host, told))


def _asked(runtime: str, *, host: Host, build: EngineBuild, service: Service, why_no_process: str) -> Choice:
    if runtime not in RUNTIMES:
        raise InputError(
            f"`{runtime}` is no runtime",
            why=f"selfhost knows {', '.join(RUNTIMES)}.",
            fix=("leave it to selfhost:\n" + command_line("up", service, change={"runtime": None}),),
            id="PL077",
        )
    if runtime == PROCESS and why_no_process:
        raise InputError(
            f"{shown(build.engine)} {build.version} does not run as a process here",
            why=f"{why_no_process[:1].upper()}{why_no_process[1:]}.",
            fix=("run it in a container:\n" + command_line("up", service, change={"runtime": "docker"}),),
            evidence=build.source,
            id="PL075",
        )
    podman = engine_seen(host, "podman") if runtime == "quadlet" else None
    if podman is not None and numbers(podman.version) and numbers(podman.version) < _QUADLET_SINCE:
        raise InputError(
            f"the Quadlet of podman {podman.version} does not know our units",
            why="They name their network and volume, which Quadlet takes from podman 4.7 on.",
            fix=("run it with podman itself:\n" + command_line("up", service, change={"runtime": "podman"}),),
            evidence=_QUADLET,
            id="PL076",
        )
    return Choice(
        name=runtime,
        decision=Decision(
            field="runtime",
            value=runtime,
            reason="asked for",
            source="user",
            evidence=Evidence.ASSUMED,
            by=by(service, "runtime", runtime),
        ),
    )


def _by_engine(kind: str, *, host: Host, devices: Devices, service: Service, told: list[str]) -> Choice | None:
    """None where it cannot, which `told` then says."""
    engine = engine_seen(host, kind)
    if engine is None or engine.remote or engine.sibling:
        told += [f"{kind} runs on another machine"] if engine is not None else []
        return None
    try:
        way = way_in(devices, host=host, kind=kind, service=service)
    except (EnvironmentMissing, InputError) as error:
        told.append(error.what)
        return None
    return Choice(
        name=kind,
        decision=Decision(
            field="runtime",
            value=kind,
            reason=f"{kind} {engine.version} hands the {_cards(devices)} in ({way.injection.way}), and holds back "
            "what else is here",
            source=way.source,
            evidence=Evidence.SEEN_HERE,
            alternatives=tuple(_others(kind, host)),
        ),
    )


def _others(kind: str, host: Host) -> Iterator[str]:
    if kind == "docker" and isinstance(engine_seen(host, "podman"), Engine):
        yield "podman"
    yield PROCESS


def _cards(devices: Devices) -> str:
    return "card" if len(devices.cards) == 1 else f"{len(devices.cards)} cards"


def _no_engine(build: EngineBuild, devices: Devices, why: str, told: list[str]) -> Decision:
    by_card = build.backend != "cuda" or why != build.why_no_process
    name = f"{shown(build.engine)} {build.version}"
    what = "only containers are supported on this card" if by_card else f"{name} is served from its image only"
    seen = "; ".join(told) or "no container engine was seen that could take it"
    return Decision(
        field="runtime",
        value=CONTAINER,
        reason=f"{what}: {why}; {seen}" if devices.cards else f"{what}: {why}",
        source=build.source,
        evidence=Evidence.READ_IN_CODE,
        alternatives=tuple(CONTAINER_ENGINES),
    )


def _process(devices: Devices, host: Host, told: list[str]) -> Decision:
    if not devices.cards:
        why = "there is no card to hand into a container"
    elif host.surroundings is None:
        why = "container engines were not looked for"
    else:
        why = "; ".join(told) or "no container engine that could take the card was seen here"
    return Decision(
        field="runtime",
        value=PROCESS,
        reason=why,
        source="selfhost",
        evidence=Evidence.SEEN_HERE,
        alternatives=tuple(CONTAINER_ENGINES),
    )
