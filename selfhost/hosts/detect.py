"""What this machine is: every room of facts is asked once, the answers are joined into a Host."""

import dataclasses
import platform
from collections.abc import Callable, Sequence

from selfhost.core.system import LocalSystem, System
from selfhost.hosts import cpu, disks, memory, nesting
from selfhost.hosts.glance import glance, pairs
from selfhost.hosts.pci import scan
from selfhost.hosts.vendors import amd, intel, nvidia, other
from selfhost.shapes.host import Accelerator, Fact, Host, Known, PciDevice, Support, Unknown

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


def to_json(host: Host) -> dict[str, object]:
    """The stable JSON form (schema selfhost.host/1). A fact is {"value", "how"} or {"unknown": reason}."""
    return {
        "schema": "selfhost.host/1",
        "ok": True,
        "machine": {
            "os": host.os,
            "kernel": host.kernel,
            "python": host.python,
            "cpu": {
                "model": host.cpu.model,
                "architecture": host.cpu.architecture,
                "features": list(host.cpu.features),
                "cores_online": host.cpu.cores_online,
                "numa_nodes": host.cpu.numa_nodes,
            },
            "cores": _fact(host.cpu.cores),
            "memory_bytes": _fact(host.memory.total),
            "memory_available_bytes": _fact(host.memory.available),
            "memory_limit_bytes": _fact(host.memory.limit),
            "nesting": [dataclasses.asdict(layer) for layer in host.nesting],
        },
        "driver": {"nvidia": _fact(host.driver)},
        "accelerators": [_accelerator(card) for card in host.accelerators],
        "disks": [{"path": disk.path, "total_bytes": disk.total, "free_bytes": disk.free} for disk in host.disks],
        "pci": [dataclasses.asdict(device) for device in host.pci],
    }


def _fact(fact: Fact[str] | Fact[int] | Fact[float] | Fact[bool]) -> dict[str, object]:
    return {"unknown": fact.reason} if isinstance(fact, Unknown) else {"value": fact.value, "how": fact.how}


def _accelerator(card: Accelerator) -> dict[str, object]:
    return {
        "index": card.index,
        "vendor": card.vendor.value,
        "name": card.name,
        "uuid": card.uuid,
        "pci": card.pci,
        "arch": _fact(card.arch),
        "memory_total_bytes": _fact(card.memory_total),
        "memory_free_bytes": _fact(card.memory_free),
        "unified_memory": card.unified,
        "support": card.support.value,
        "support_reason": card.support_reason,
        "present": _fact(card.present),
        "openable": _fact(card.openable),
        "usable": _fact(card.usable),
        "kernel_driver": card.kernel_driver,
        "nodes": [{**dataclasses.asdict(node), "mode": f"{node.mode:04o}"} for node in card.nodes],
    }
