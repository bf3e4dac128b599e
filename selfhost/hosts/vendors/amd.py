"""AMD cards: PCI, the KFD topology that ROCm itself reads, /dev/kfd and the card's render node. No ROCm is needed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.engine_support import support
from selfhost.hosts.glance import glance, names, number, pairs
from selfhost.hosts.nodes import openable, tried
from selfhost.hosts.pci import BUS
from selfhost.hosts.pci_table import Card, lookup, screen
from selfhost.shapes.host import Accelerator, DeviceNode, Fact, Known, PciDevice, Support, Unknown, Vendor

VENDOR_ID = "1002"
_TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"


@dataclass(frozen=True, slots=True)
class KfdNode:
    """A GPU node of the KFD topology (linux include/uapi/linux/kfd_sysfs.h)."""

    address: str
    """PCI address; empty when the properties do not say."""
    device_id: str
    arch: str
    render_minor: int


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    devices = tuple(device for device in pci if device.vendor_id == VENDOR_ID and not screen(device))
    nodes, masked = topology(system)
    matched = {device.address: _match(device, nodes, devices) for device in devices}
    found = [_card(system, device, matched[device.address], masked=len(masked)) for device in devices]
    known = {device.address for device in devices} | {""}
    ids = {device.device_id for device in devices}
    # A card whose sysfs entry on the bus is hidden is still a node of the topology.
    hidden = [node for node in nodes if node.address not in known or (not node.address and node.device_id not in ids)]
    found += [_card(system, _function(node), node, masked=len(masked)) for node in hidden]
    unplaced = sum(node is None for node in matched.values())
    found += [_masked(entry) for entry in masked[unplaced:]]
    return tuple(found)


def _masked(entry: str) -> Accelerator:
    """A card of which this container sees no more than that it exists."""
    path = f"{_TOPOLOGY}/{entry}/properties"
    hidden = Unknown(f"{path} refuses to be read")
    return Accelerator(
        index=0,
        vendor=Vendor.AMD,
        name=f"AMD card (KFD node {entry})",
        arch=hidden,
        memory_total=hidden,
        memory_free=hidden,
        support=Support.UNKNOWN,
        support_reason="its kind cannot be read here",
        present=Known(value=True, how=_TOPOLOGY),
        openable=Known(value=False, how=f"{path}: EPERM"),
        usable=Known(value=False, how="masked by the device rules (cgroup) of this container"),
        nodes=(DeviceNode(path="/dev/dri/renderD*", opened="EPERM"),),
    )


def topology(system: System) -> tuple[tuple[KfdNode, ...], tuple[str, ...]]:
    """GPU nodes that may be read, and those that the device cgroup masks: they are listed, but refuse to be read."""
    found: list[KfdNode] = []
    masked: list[str] = []
    for entry in names(system, _TOPOLOGY):
        try:
            properties = pairs(system.read(f"{_TOPOLOGY}/{entry}/properties"))
        except OSError:
            masked.append(entry)
            continue
        node = _parse(properties)
        if node:
            found.append(node)
    return tuple(found), tuple(masked)


def _parse(properties: Mapping[str, str]) -> KfdNode | None:
    """Both figures must be there: `simd_count` 0 is a CPU node, a target of 0 is no GPU that computes."""
    simds, target = number(properties.get("simd_count", "")), number(properties.get("gfx_target_version", ""))
    if not simds or not target:
        return None
    location = number(properties.get("location_id", "")) or 0
    domain = number(properties.get("domain", "")) or 0
    bus, slot, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 0x7
    return KfdNode(
        address=f"{domain:04x}:{bus:02x}:{slot:02x}.{function}" if location else "",
        device_id=f"{number(properties.get('device_id', '')) or 0:04x}",
        arch=gfx_name(target),
        render_minor=number(properties.get("drm_render_minor", "")) or 0,
    )


def gfx_name(target: int) -> str:
    """`90010` is gfx90a, `110501` is gfx1151: decimal MMmmss, minor and step as hexadecimal digits."""
    return f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"


def _match(device: PciDevice, nodes: Sequence[KfdNode], devices: Sequence[PciDevice]) -> KfdNode | None:
    for node in nodes:
        if node.address == device.address:
            return node
    twins = [other for other in devices if other.device_id == device.device_id]
    unplaced = [node for node in nodes if not node.address and node.device_id == device.device_id]
    return unplaced[0] if len(twins) == 1 and unplaced else None


def _function(node: KfdNode) -> PciDevice:
    return PciDevice(
        address=node.address, vendor_id=VENDOR_ID, device_id=node.device_id, class_id="038000", driver="amdgpu"
    )


def _card(system: System, device: PciDevice, node: KfdNode | None, *, masked: int) -> Accelerator:
    row = lookup(VENDOR_ID, device.device_id)
    arch = _arch(node, row, device.device_id)
    verdict, reason = support("amd", arch)
    nodes = _nodes(system, device, node)
    opened = openable(nodes)
    integrated = bool(row and row.integrated)
    total, free = _memory(system, device, integrated=integrated)
    return Accelerator(
        index=0,
        vendor=Vendor.AMD,
        name=glance(system, f"{BUS}/{device.address}/product_name") or (row.name if row else f"AMD {device.device_id}"),
        pci=device.address,
        uuid="",
        arch=arch,
        memory_total=total,
        memory_free=free,
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how=f"PCI function {device.address}" if device.address else _TOPOLOGY),
        openable=opened,
        usable=_usable(opened, node, masked=masked),
        nodes=nodes,
        unified=integrated,
        kernel_driver=device.driver,
    )


def _arch(node: KfdNode | None, row: Card | None, device_id: str) -> Fact[str]:
    if node:
        return Known(node.arch, "gfx_target_version of the KFD topology")
    if row:
        return Known(row.arch, "table of device ids")
    return Unknown(f"device id {device_id} is in no table of this version")


def _nodes(system: System, device: PciDevice, node: KfdNode | None) -> tuple[DeviceNode, ...]:
    """/dev/kfd and the card's own render node. Its number is not 128 + index: partitions and other GPUs shift it."""
    names_here = [f"renderD{node.render_minor}"] if node and node.render_minor else []
    names_here += [name for name in names(system, f"{BUS}/{device.address}/drm") if re.fullmatch(r"renderD\d+", name)]
    render = f"/dev/dri/{names_here[0]}" if names_here else ""
    last = tried(system, render) if render else DeviceNode(path="/dev/dri/renderD*", opened="ENOENT")
    return (tried(system, "/dev/kfd"), last)


def _memory(system: System, device: PciDevice, *, integrated: bool) -> tuple[Fact[int], Fact[int]]:
    """Bytes from amdgpu's own files. An APU computes in its carve-out and in the machine's memory behind it (GTT)."""
    kinds = ("vram", "gtt") if integrated else ("vram",)
    base = f"{BUS}/{device.address}/mem_info_"
    totals = [number(glance(system, f"{base}{kind}_total")) for kind in kinds]
    used = [number(glance(system, f"{base}{kind}_used")) for kind in kinds]
    how = " + ".join(f"mem_info_{kind}" for kind in kinds)
    if any(value is None for value in totals):
        missing = Unknown(f"{base}vram_total does not exist")
        return missing, missing
    total = sum(value or 0 for value in totals)
    if any(value is None for value in used):
        return Known(total, f"{how} totals"), Unknown(f"{base}vram_used does not exist")
    return Known(total, f"{how} totals"), Known(total - sum(value or 0 for value in used), f"{how}, total less used")


def _usable(opened: Fact[bool], node: KfdNode | None, *, masked: int) -> Fact[bool]:
    if isinstance(opened, Known) and not opened.value:
        return Known(value=False, how=f"not openable: {opened.how}")
    if node:
        return Known(value=True, how="node of the KFD topology, and it opened")
    if masked:
        return Known(
            value=False, how=f"{masked} node(s) of the KFD topology refuse to be read: not granted to this container"
        )
    return Known(value=False, how="amdgpu has made no KFD node for it")
