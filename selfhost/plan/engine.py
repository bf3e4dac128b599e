"""Which engine, in which build and image, and whether it runs as a process or only in a container."""

from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.table import read_table
from selfhost.engines import builds
from selfhost.engines.images import image_of
from selfhost.engines.names import shown
from selfhost.hosts.placement import old_driver
from selfhost.hosts.slices import is_slice
from selfhost.plan.container.choose import CONTAINER, CONTAINER_ENGINES, KUBERNETES, PROCESS, choose_runtime
from selfhost.plan.container.image import Reference, reference_of
from selfhost.plan.devices import Devices
from selfhost.plan.engine_words import engine_decision, environment_decision, image_decision
from selfhost.shapes.host import Host, Known
from selfhost.shapes.plan import Decision, EngineBuild, Image, Plan
from selfhost.shapes.service import Service

__all__ = ["CONTAINER", "KUBERNETES", "PROCESS"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A row of engine.toml: which engines compute on it."""

    backend: str
    archs: tuple[str, ...]
    engines: tuple[str, ...]
    source: str
    without: str = ""
    """Why another engine does not compute there, in a clause."""
    note: str = ""
    gguf: bool = False
    """llama.cpp with a GGUF of the model is the better answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """What is started. `runtime` as in Plan; `reference` is the image to pull, None for a process."""

    build: EngineBuild
    image: Image | None
    runtime: str
    decisions: tuple[Decision, ...]
    reference: Reference | None = None


def choose_engine(*, host: Host, devices: Devices, service: Service) -> EngineChoice:
    """The engine asked for, or the first that computes on these devices, in the newest build for their driver.

    Raises InputError for an engine that has no code for the card, EnvironmentMissing for a driver that is too old.
    """
    arch = _arch(devices)
    card = card_of(devices.backend, arch)
    asked = service.engine or card.engines[0]
    _has_code(asked, card, devices)
    driver = host.driver.value if devices.backend == "cuda" and isinstance(host.driver, Known) else ""
    build = builds.choose(backend=devices.backend, asked=asked, driver=driver)
    return chosen(build, host=host, devices=devices, service=service)


def chosen(build: EngineBuild, *, host: Host, devices: Devices, service: Service) -> EngineChoice:
    """What follows from a build that was settled on. Raises EnvironmentMissing for a driver that is too old for it."""
    driver = host.driver.value if devices.backend == "cuda" and isinstance(host.driver, Known) else ""
    if not builds.starts_on(build, driver):
        found = old_driver(host)
        if found is not None:
            raise found
    card = card_of(devices.backend, _arch(devices))
    image = image_of(build, arch=_arch(devices))
    why = _only_containers(build, devices)
    decisions = [
        engine_decision(
            build,
            host=host,
            devices=devices,
            service=service,
            note=card.note,
            source=card.source,
            others=tuple(name for name in card.engines if name != build.engine),
            gguf=card.gguf,
        )
    ]
    runtime = choose_runtime(host=host, devices=devices, build=build, image=image, service=service, why_no_process=why)
    decisions.append(runtime.decision)
    if runtime.name == PROCESS:
        decisions.append(environment_decision(build))
    reference = None
    if runtime.name in CONTAINER_ENGINES or runtime.name == KUBERNETES:
        reference = reference_of(
            image, build=build, service=service, architecture=host.cpu.architecture,
            pulled=runtime.name != KUBERNETES,
        )  # fmt: skip
        decisions.append(reference.decision)
    elif image is not None and devices.cards:
        decisions.append(image_decision(image))
    return EngineChoice(build=build, image=image, runtime=runtime.name, decisions=tuple(decisions), reference=reference)


def card_of(backend: str, arch: str) -> Card:
    """The row for a kind of card; one that no row knows is taken for one that vLLM computes on."""
    for row in read_table("selfhost.plan", "engine.toml")["card"]:
        if row["backend"] == backend and (not row["archs"] or arch in row["archs"]):
            return Card(**{**row, "archs": tuple(row["archs"]), "engines": tuple(row["engines"])})
    return Card(
        backend=backend,
        archs=(arch,),
        engines=("vllm", "sglang") if backend == "cuda" else ("vllm",),
        source="no row of engine.toml knows this architecture",
        note="no table of this version knows this card: whether the engine has code for it, its log tells",
    )


def only_in_a_container(plan: Plan) -> EnvironmentMissing:
    """Why `up` does not start a plan that is for a container."""
    reason = next((decision.reason for decision in plan.decisions if decision.field == "runtime"), "")
    return EnvironmentMissing(
        f"{shown(plan.build.engine)} {plan.build.version} on {plan.device_name} runs in a container only",
        why=f"{reason[:1].upper()}{reason[1:]}.",
        fix=(
            "let Docker be set up, then start it again:\nselfhost prepare --only docker",
            "or take another engine or version that runs as a process:\nselfhost plan MODEL --explain",
            "or run on the CPU:\nselfhost up MODEL --device cpu",
        ),
        evidence=plan.image.reference if plan.image is not None else "",
        id="PL072",
    )


def _has_code(asked: str, card: Card, devices: Devices) -> None:
    name, _, _ = asked.strip().lower().partition("@")
    known = {build.engine for build in builds.rows()}
    if name not in known or name in card.engines:
        return
    first = card.engines[0]
    raise InputError(
        f"{shown(name)} does not run on {devices.name}",
        why=f"{card.without}.",
        fix=(f"use {shown(first)}, which does:\nselfhost up MODEL --engine {first}",),
        evidence=card.source,
        id="PL071",
    )


def _only_containers(build: EngineBuild, devices: Devices) -> str:
    """Why this version could not start it as a process; empty when it could."""
    if devices.cards and is_slice(devices.cards[0]):
        return "a slice of a card is handed to a container by its uuid, and a process would see the whole card"
    return build.why_no_process


def _arch(devices: Devices) -> str:
    if not devices.cards:
        return ""
    arch = devices.cards[0].arch
    return arch.value if isinstance(arch, Known) else ""
