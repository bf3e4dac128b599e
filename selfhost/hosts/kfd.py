"""The KFD topology: the GPUs as ROCm itself finds them, readable without any program of ROCm.

Fields as in linux include/uapi/linux/kfd_sysfs.h; values are decimal.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.glance import glance, names, number, pairs

NODES = "/sys/class/kfd/kfd/topology/nodes"


@dataclass(frozen=True, slots=True)
class KfdNode:
    """A GPU node; under compute partitioning one part of a card."""

    entry: str
    """Its directory's name, the number that rocminfo calls `Node`."""
    address: str
    """PCI address; empty when the properties do not say. Of a partition the function digit is the part's number."""
    device_id: str
    arch: str
    render_minor: int
    xcc: int
    hive: int
    unique_id: int
    """The same on every part of one card."""
    gpu_id: int
    memory: int
    """Bytes of its own banks: of a part the even share. 0 when no bank says."""

    @property
    def slot(self) -> str:
        """The address without its function: what all parts of one card have in common."""
        return self.address.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Topology:
    """What could be read, what refused, and what contradicts itself."""

    nodes: tuple[KfdNode, ...] = ()
    masked: tuple[str, ...] = ()
    """Listed, but the device cgroup refuses every read: a GPU that is there and is not granted."""
    contradictions: tuple[str, ...] = ()
    """Nodes with a target and no compute units, or with units and no target, in words."""


def read(system: System) -> Topology:
    nodes: list[KfdNode] = []
    masked: list[str] = []
    odd: list[str] = []
    for entry in sorted(names(system, NODES), key=lambda name: (number(name) is None, number(name) or 0, name)):
        properties = _properties(system, entry)
        if properties is None:
            masked.append(entry)
            continue
        simds, target = number(properties.get("simd_count", "")), number(properties.get("gfx_target_version", ""))
        if simds and target:
            nodes.append(_node(system, entry, properties, target))
        elif target:
            odd.append(f"KFD node {entry} names {gfx_name(target)} and has no compute units (simd_count 0)")
    return Topology(tuple(nodes), tuple(masked), tuple(odd))


def _properties(system: System, entry: str) -> Mapping[str, str] | None:
    """None for a node that refuses to be read. One without properties is no node."""
    for name in ("properties", "gpu_id"):
        try:
            text = system.read(f"{NODES}/{entry}/{name}")
        except PermissionError:
            return None
        except OSError:
            continue
        return pairs(text) if name == "properties" else {}
    return {}


def _node(system: System, entry: str, properties: Mapping[str, str], target: int) -> KfdNode:
    def figure(name: str) -> int:
        return number(properties.get(name, "")) or 0

    return KfdNode(
        entry=entry,
        address=address(figure("location_id"), figure("domain")),
        device_id=f"{figure('device_id') & 0xFFFF:04x}",
        arch=gfx_name(target),
        render_minor=figure("drm_render_minor"),
        xcc=figure("num_xcc"),
        hive=figure("hive_id"),
        unique_id=figure("unique_id"),
        gpu_id=number(glance(system, f"{NODES}/{entry}/gpu_id")) or 0,
        memory=_memory(system, entry),
    )


def address(location: int, domain: int = 0) -> str:
    """`18176` is 0000:47:00.0; empty for 0, which is what a CPU has."""
    bus, slot, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 0x7
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function}" if location else ""


def _memory(system: System, entry: str) -> int:
    """Private (1) and public (2) heaps of the GPU; heap 0 is the machine's memory."""
    base = f"{NODES}/{entry}/mem_banks"
    banks = (pairs(glance(system, f"{base}/{bank}/properties")) for bank in names(system, base))
    return sum(number(bank.get("size_in_bytes", "")) or 0 for bank in banks if bank.get("heap_type") in ("1", "2"))


def used_memory(system: System, entry: str) -> int | None:
    """Bytes that processes of KFD hold there; None where the kernel does not count them."""
    base = f"{NODES}/{entry}/mem_banks"
    found = [number(glance(system, f"{base}/{bank}/used_memory")) for bank in names(system, base)]
    figures = [figure for figure in found if figure is not None]
    return sum(figures) if figures else None


def gfx_name(target: int) -> str:
    """`90010` is gfx90a, `110501` is gfx1151: decimal MMmmss, minor and step as hexadecimal digits."""
    return f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"


def wrong_major(system: System) -> str:
    """Why /dev/kfd opens with EINVAL: its number is not the one under which this kernel registered kfd."""
    registered = re.search(r"(?m)^\s*(\d+)\s+kfd$", glance(system, "/proc/devices"))
    try:
        seen = system.stat("/dev/kfd").major
    except OSError:
        return ""
    if registered and int(registered[1]) != seen:
        return f"/dev/kfd has major {seen}, the kernel's kfd has {registered[1]}: the node is of an earlier start"
    return ""
