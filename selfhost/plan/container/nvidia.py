"""NVIDIA cards in a container: CDI, a device request, the toolkit's runtime, or Windows' own device under WSL2."""

import re
from dataclasses import replace

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.hosts.slices import is_slice
from selfhost.plan.command_line import command_line
from selfhost.plan.container.cdi_names import EVERYTHING, KIND, cdi_names
from selfhost.plan.container.surrounding import at_least, engine_seen, is_rootless, is_tegra, is_wsl, nvidia_toolkit
from selfhost.plan.container.way import Way, keyed
from selfhost.shapes.host import Accelerator, Host, Known
from selfhost.shapes.plan import Evidence, Injection
from selfhost.shapes.service import Service
from selfhost.shapes.surroundings import Engine
from selfhost.shapes.workload import CdiName, DevicePath, DeviceRequest, Mount

ROLE = "nvidia_container_toolkit"
_CDI_DOCS = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html"
_COMPOSE_DOCS = "https://docs.docker.com/compose/how-tos/gpu-support/"
_RUNTIME_DOCS = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
_RELOAD = "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48"
_JETSON = "https://github.com/NVIDIA/TensorRT-LLM/issues/799"
_WSL = "https://docs.nvidia.com/cuda/wsl-user-guide/"
_WSL_LIBRARIES = "/usr/lib/wsl"
_UNSEEN = "this engine was not seen"
_GPUS_BY_CDI = (29,)
_CARD = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")


def nvidia_way(cards: tuple[Accelerator, ...], *, host: Host, kind: str, service: Service) -> Way:
    """Raises EnvironmentMissing where the engine was seen and has no way, InputError for what no way can grant."""
    if is_wsl(host):
        _refuse_part(cards, host, service)
    engine = engine_seen(host, kind)
    if engine is None:
        return replace(_as_documented(cards, host, kind), evidence=Evidence.ASSUMED, note=_UNSEEN)
    names = cdi_names(cards, host=host, engine=engine) if _takes_cdi(engine) else ()
    if names:
        return _by_cdi(names)
    ways = (() if kind == "podman" else _by_toolkit(cards, host, engine)) or _by_dxg(host, engine)
    if not ways:
        raise _no_way(engine, host, service)
    return ways[0]


def _takes_cdi(engine: Engine) -> bool:
    since = (4, 1) if engine.kind == "podman" else (25,)
    off = isinstance(engine.cdi_enabled, Known) and not engine.cdi_enabled.value
    return at_least(engine, *since) and not off


def _as_documented(cards: tuple[Accelerator, ...], host: Host, kind: str) -> Way:
    if is_tegra(cards) and kind == "docker":
        return _by_tegra()
    everything = is_wsl(host) or is_tegra(cards)
    if kind == "podman":
        own = (CdiName(kind=KIND, name=card.uuid or str(card.index)) for card in cards)
        return _by_cdi((EVERYTHING,) if everything else tuple(own))
    return _by_request(cards, everything=everything)


def _by_cdi(names: tuple[CdiName, ...]) -> Way:
    said = " ".join(f"{name.kind}={name.name}" for name in names)
    numbered = any(name.name.isdecimal() for name in names)
    why = "CDI: the engine itself adds the nodes, so they stay after `systemctl daemon-reload`"
    why += "; its file has no name by UUID, and the number is that of the card's own node" if numbered else ""
    injection = Injection(way="cdi", cdi=names)
    return Way(injection=injection, value=f"CDI {said}", reason=why, source=_CDI_DOCS, reasons=keyed(injection, why))


def _by_toolkit(cards: tuple[Accelerator, ...], host: Host, engine: Engine) -> tuple[Way, ...]:
    if not _toolkit_works(host, engine):
        return ()
    if is_tegra(cards):
        return (_by_tegra(),) if "nvidia:runtime" in engine.injects else ()
    if "nvidia:gpus" in engine.injects:
        way = _by_request(cards, everything=is_wsl(host))
        by_cdi = at_least(engine, *_GPUS_BY_CDI) and "nvidia:cdi" in engine.injects
        lost = engine.cgroup_driver == "systemd" and not by_cdi
        return (_kept(way, cards) if lost and not is_wsl(host) else way,)
    if "nvidia:runtime" in engine.injects:
        return (_by_runtime(cards, host, engine),)
    return ()


def _toolkit_works(host: Host, engine: Engine) -> bool:
    """Whether its hook may open devices: device rules are for root alone, and must be written where root runs."""
    toolkit = nvidia_toolkit(host)
    if toolkit is None:
        return not is_rootless(host, engine.kind)
    if toolkit.accepts_env_unprivileged is False:
        return False
    if is_rootless(host, engine.kind):
        return True in (toolkit.no_cgroups, toolkit.user_no_cgroups)
    return toolkit.no_cgroups is not True or any(layer.label == "lxc" for layer in host.nesting)


def _by_request(cards: tuple[Accelerator, ...], *, everything: bool) -> Way:
    ids = tuple(card.uuid or str(card.index) for card in cards)
    request = DeviceRequest(driver="nvidia", count=-1) if everything else DeviceRequest(driver="nvidia", ids=ids)
    injection = Injection(way="device request", requests=(request,))
    why = (
        "all cards: under WSL2 they share one device"
        if everything
        else "by UUID, which stays when cards are added or change their slots"
    )
    why = f"{why}; no CDI name of them was seen here"
    return Way(
        injection=injection,
        value=f"device request {'all' if everything else ','.join(ids)}",
        reason=why,
        source=_COMPOSE_DOCS,
        reasons=keyed(injection, why),
    )


def _by_runtime(cards: tuple[Accelerator, ...], host: Host, engine: Engine) -> Way:
    ids = "all" if is_wsl(host) else ",".join(card.uuid or str(card.index) for card in cards)
    injection = Injection(way="nvidia runtime", runtime="nvidia", env=_granting(ids))
    why = "the only way of NVIDIA's toolkit that this engine has; the variable is read by the runtime and grants cards"
    way = Way(
        injection=injection,
        value=f"runtime nvidia, {ids}",
        reason=why,
        source=_RUNTIME_DOCS,
        reasons={**keyed(injection, why), "env.NVIDIA_VISIBLE_DEVICES": "what the runtime lets in, by UUID; no mask"},
    )
    toolkit = nvidia_toolkit(host)
    legacy = toolkit is not None and toolkit.mode == "legacy" and engine.cgroup_driver == "systemd"
    return _kept(way, cards) if legacy else way


def _by_tegra() -> Way:
    injection = Injection(way="tegra", runtime="nvidia", env=_granting("all"))
    why = "on a Jetson the toolkit mounts the driver's files from a list, which only its runtime does"
    return Way(injection=injection, value="runtime nvidia", reason=why, source=_JETSON, reasons=keyed(injection, why))


def _granting(ids: str) -> dict[str, str]:
    return {"NVIDIA_VISIBLE_DEVICES": ids, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}


def _kept(way: Way, cards: tuple[Accelerator, ...]) -> Way:
    """With the cards' nodes beside it, which then stay open when systemd writes its device rules anew."""
    paths = dict.fromkeys(node.path for card in cards for node in card.nodes if _CARD.fullmatch(node.path))
    if not paths or any(is_slice(card) for card in cards):
        return way
    why = "beside the request: `systemctl daemon-reload` drops nodes that only the toolkit's hook added"
    return replace(
        way,
        injection=replace(way.injection, devices=tuple(DevicePath(source=path) for path in paths)),
        reason=f"{way.reason}; their nodes beside it, for `systemctl daemon-reload` drops what only the hook added",
        source=f"{way.source}; {_RELOAD}",
        reasons={**way.reasons, "devices": why},
    )


def _by_dxg(host: Host, engine: Engine) -> tuple[Way, ...]:
    """Without a toolkit, under WSL2: Windows' device and the libraries that come with it."""
    if not is_wsl(host) or engine.remote:
        return ()
    injection = Injection(
        way="dxg",
        devices=(DevicePath(source="/dev/dxg"),),
        mounts=(Mount(source=_WSL_LIBRARIES, target=_WSL_LIBRARIES, read_only=True),),
        env={"LD_LIBRARY_PATH": f"{_WSL_LIBRARIES}/lib"},
    )
    why = "no toolkit was seen in this engine; WSL2's own device and libraries are enough for CUDA"
    return (
        Way(
            injection=injection,
            value="/dev/dxg",
            reason=why,
            source=_WSL,
            evidence=Evidence.ASSUMED,
            reasons={
                **keyed(injection, why),
                "mounts.injection": "the driver's libraries, which Windows puts there",
                "env.LD_LIBRARY_PATH": "where libcuda lies under WSL2",
            },
        ),
    )


def _refuse_part(cards: tuple[Accelerator, ...], host: Host, service: Service) -> None:
    """Under WSL2 a container sees every card; the engine takes the first ones, which must be those that are meant."""
    same = sorted((card for card in host.accelerators if card.vendor is cards[0].vendor), key=lambda card: card.pci)
    if {card.index for card in same[: len(cards)]} == {card.index for card in cards}:
        return
    raise InputError(
        f"under WSL2 a container cannot be kept to {cards[0].name} ({cards[0].uuid or cards[0].index})",
        why="All cards share one device there, so a container sees all of them, and the engine takes the first.",
        fix=(
            "take the first card:\n" + command_line("up", service, change={"device": str(same[0].index)}),
            "or run it as a process, which can choose:\n" + command_line("up", service, change={"runtime": "process"}),
        ),
        id="PL079",
    )


def _no_way(engine: Engine, host: Host, service: Service) -> EnvironmentMissing:
    offers = ", ".join(engine.runtimes) or "none"
    cdi = [spec.file for spec in host.surroundings.cdi if spec.kind == KIND] if host.surroundings else []
    wrong = f"{', '.join(cdi)} names none of these cards as they are now" if cdi else "no CDI file names its cards"
    by_hand = f"or write the CDI file by hand:\nsudo nvidia-ctk cdi generate --output={cdi[0]}" if cdi else ""
    if engine.desktop:
        wrong = "Docker Desktop runs containers in a virtual machine of its own, which has no card"
    return EnvironmentMissing(
        f"{engine.kind} {engine.version} has no way to hand an NVIDIA card into a container",
        why=f"Its runtimes are {offers}; {wrong}.",
        fix=tuple(
            fix
            for fix in (
                "use the engine of the machine itself:\ndocker context use default"
                if engine.desktop
                else f"let NVIDIA's container toolkit be set up:\nselfhost prepare --only {ROLE}",
                by_hand,
                "or run it as a process:\n" + command_line("up", service, change={"runtime": "process"}),
            )
            if fix
        ),
        id="PL078",
    )
