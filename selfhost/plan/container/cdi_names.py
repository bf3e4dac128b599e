"""The CDI names of planned NVIDIA cards, as far as a current specification or the engine itself proves them."""

import re

from selfhost.core.versions import numbers
from selfhost.hosts.slices import is_slice
from selfhost.plan.container.surrounding import is_tegra, is_wsl
from selfhost.shapes.host import Accelerator, Host, Known
from selfhost.shapes.surroundings import CdiSpec, Engine
from selfhost.shapes.workload import CdiName

KIND = "nvidia.com/gpu"
EVERYTHING = CdiName(kind=KIND, name="all")
_CARD = re.compile(r"/dev/nvidia\d+")
_READS_0_7 = {"docker": (26, 1), "podman": (5, 1)}
"""From which version an engine reads the format 0.7 (NVIDIA, cdi-support)."""


def cdi_names(cards: tuple[Accelerator, ...], *, host: Host, engine: Engine) -> tuple[CdiName, ...]:
    """By UUID where the card has such a name, else by the name whose nodes are those of the card; empty: not proven."""
    offered = _offered(host, engine)
    if is_wsl(host) or is_tegra(cards):  # one node for all cards: there is no other name
        return (EVERYTHING,) if f"{KIND}=all" in offered else ()
    found = [_name(card, offered, alone=len(host.accelerators) == 1) for card in cards]
    return tuple(CdiName(kind=KIND, name=name) for name in found if name) if all(found) else ()


def _offered(host: Host, engine: Engine) -> dict[str, tuple[str, ...]]:
    """Full names with the nodes that they bring in; a name that only the engine gives has none."""
    offered: dict[str, tuple[str, ...]] = dict.fromkeys(engine.cdi_devices, ())
    specs = host.surroundings.cdi if host.surroundings is not None else ()
    for spec in specs:
        if spec.kind == KIND and is_current(spec, host) and _reads(engine, spec):
            offered.update({device.name: device.nodes for device in spec.devices})
    return offered


def is_current(spec: CdiSpec, host: Host) -> bool:
    """Whether it fits this machine as it is: its driver, every path, every node."""
    if spec.fault or spec.missing or spec.stale:
        return False
    if not spec.driver or not isinstance(host.driver, Known) or is_wsl(host):
        return True
    return numbers(spec.driver) == numbers(host.driver.value)


def _reads(engine: Engine, spec: CdiSpec) -> bool:
    folders = {_run(folder) for folder in engine.cdi_dirs}
    if folders and _run(spec.file.rpartition("/")[0]) not in folders:
        return False
    version = numbers(engine.version)
    return numbers(spec.version) < (0, 7) or not version or version >= _READS_0_7.get(engine.kind, ())


def _run(folder: str) -> str:
    return folder.rstrip("/").replace("/var/run/", "/run/")


def _name(card: Accelerator, offered: dict[str, tuple[str, ...]], *, alone: bool) -> str:
    if card.uuid and f"{KIND}={card.uuid}" in offered:
        return card.uuid
    if is_slice(card):  # its number says nothing that could be compared with the slice itself
        return ""
    own = {node.path for node in card.nodes if _CARD.fullmatch(node.path)}
    names = [name.partition("=")[2] for name in offered if name.startswith(f"{KIND}=")]
    proven = [
        name
        for name in names
        if own and {path for path in offered[f"{KIND}={name}"] if _CARD.fullmatch(path)} == own and name != "all"
    ]
    if not proven and alone and "0" in names:
        return "0"
    return min(proven, key=lambda name: (not name.isdecimal(), len(name), name), default="")
