"""What this machine is: every room of facts is asked once, the answers are joined into a Host."""

import dataclasses
import platform
from collections.abc import Callable, Sequence

from selfhost.core.system import LocalSystem, System
from selfhost.hosts import cpu, disks, memory, nesting
from selfhost.hosts.glance import glance, pairs
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


def detect(system: System, *, disk_paths: Sequence[str] = ("/",)) -> Host:
    """Look at `system`. Nothing that is missing or refused raises: it becomes an Unknown with its reason."""
    functions = scan(system)
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
