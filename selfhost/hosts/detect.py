"""What this machine is: every room of facts is asked once, the answers are joined into a Host."""

import dataclasses
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from selfhost.core.system import LocalSystem, System
from selfhost.hosts import cpu, disks, memory, nesting, visible_env
from selfhost.hosts.glance import exists, glance, pairs
from selfhost.hosts.pci import scan
from selfhost.hosts.vendors import amd, intel, nvidia, other
from selfhost.shapes.host import Accelerator, Host, Known, PciDevice, Support

# A new vendor is a file beside these and an entry here.
VENDORS: tuple[Callable[[System, Sequence[PciDevice]], tuple[Accelerator, ...]], ...] = (
    nvidia.read,
    amd.read,
    intel.read,
    other.read,
)


def detect(
    system: System,
    *,
    disk_paths: Sequence[str] = ("/",),
    wide: bool = False,
    containers: bool = False,
    brief: bool = False,
) -> Host:
    """Look at `system`. Nothing that is missing or refused raises: it becomes an Unknown with its reason.

    `wide` also fills `Host.surroundings` and `Host.links`: container engines, CDI, toolkits, drivers, kernel, cluster.
    `containers` asks the engines for every container as well; a snapshot's come without being asked for.
    `brief` asks no more of an engine than its version where there is no card that it could hand in.
    """
    if not wide:
        return _narrow(system, disk_paths, scan(system))
    from selfhost.hosts import engine_questions, surroundings  # at use: `up` and `plan` need neither

    # The engines take as long as the vendors' tools, so all are asked at once.
    with ThreadPoolExecutor(1) as pool:
        # podman takes a quarter of a second to tell all; with no card to hand in, its name and version are enough.
        functions = scan(system)
        least = brief and isinstance(system, LocalSystem) and not _may_have_cards(system, functions)
        said = pool.submit(engine_questions.ask, system, brief=least)
        host = _narrow(system, disk_paths, functions)
        cards = host.accelerators
        around = surroundings.read(system, cards, host.pci, said.result(), containers=containers)
    return dataclasses.replace(host, surroundings=around, links=surroundings.topology(system, cards))


def _may_have_cards(system: System, functions: Sequence[PciDevice]) -> bool:
    return bool(functions) or any(
        exists(system, node) for node in ("/dev/dxg", "/dev/kfd", "/dev/nvidiactl", "/dev/nvmap")
    )


def _narrow(system: System, disk_paths: Sequence[str], functions: tuple[PciDevice, ...]) -> Host:
    cards = tuple(card for read in VENDORS for card in read(system, functions))
    return Host(
        os=_os(system),
        kernel=glance(system, "/proc/sys/kernel/osrelease") or "unknown",
        # Only of this very machine do we know the interpreter that would run an engine.
        python=platform.python_version() if isinstance(system, LocalSystem) else "unknown",
        cpu=cpu.read(system),
        memory=memory.read(system),
        disks=disks.read(system, disk_paths),
        pci=functions,
        accelerators=_numbered(cards),
        nesting=nesting.read(system),
        driver=nvidia.driver(system, cards),
        env=dict(visible_env.read(system)),
    )


def _os(system: System) -> str:
    text = glance(system, "/etc/os-release") or glance(system, "/usr/lib/os-release")
    release = {key: value.strip("\"'") for key, value in pairs(text, separator="=").items()}
    return release.get("PRETTY_NAME") or release.get("NAME") or release.get("ID") or "unknown"


def _numbered(cards: Sequence[Accelerator]) -> tuple[Accelerator, ...]:
    """Index 0 is the first that can be used, so that inside a container our numbers are those of nvidia-smi."""

    def rank(card: Accelerator) -> int:
        if card.support is Support.UNSUPPORTED:
            return 2
        return 0 if isinstance(card.usable, Known) and card.usable.value else 1

    return tuple(dataclasses.replace(card, index=index) for index, card in enumerate(sorted(cards, key=rank)))


def with_links(host: Host, system: System) -> Host:
    """How several cards reach each other, which a plan over more than one needs; one card asks nothing."""
    if len(host.usable_accelerators) < 2:
        return host
    from selfhost.hosts import surroundings  # at use: most machines have one card

    return dataclasses.replace(host, links=surroundings.topology(system, host.accelerators))
