"""One AMD card out of what is known of it: the PCI function, the KFD node, and what the tools add."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts import kfd
from selfhost.hosts.amd_memory import memory
from selfhost.hosts.amd_reading import Reading
from selfhost.hosts.engine_support import support
from selfhost.hosts.glance import exists, glance, names, number
from selfhost.hosts.kfd import KfdNode
from selfhost.hosts.nodes import openable, tried
from selfhost.hosts.pci import folder
from selfhost.hosts.pci_table import Card, is_virtual_function, lookup
from selfhost.shapes.host import Accelerator, DeviceNode, Fact, Known, Partitioning, PciDevice, Support, Unknown, Vendor

VENDOR_ID = "1002"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Everything that speaks of one card."""

    device: PciDevice | None = None
    node: KfdNode | None = None
    reading: Reading | None = None
    parts: int = 1
    """Into how many the card is cut."""
    modes: tuple[str, str] = ("", "")
    """Compute and memory mode."""
    render: str = ""
    """Name of the render node when neither the node nor the bus tells it."""
    contradiction: str = ""
    masked: int = 0

    @property
    def device_id(self) -> str:
        known = (source.device_id for source in (self.device, self.node, self.reading) if source)
        return next((device_id for device_id in known if device_id), "")

    @property
    def is_part(self) -> bool:
        return self.parts > 1


def accelerator(system: System, sources: Sources) -> Accelerator:
    row = lookup(VENDOR_ID, sources.device_id)
    reading = sources.reading
    arch = _arch(sources, row)
    verdict, reason = support("amd", arch)
    nodes = _nodes(system, sources)
    opened = _openable(system, sources, nodes)
    integrated = bool(row and row.integrated) or bool(reading and reading.is_apu)
    # The HBM of MI300A is all that it has: amdgpu calls it VRAM, and GTT is the same memory once more.
    shares = integrated and sources.device_id != "74a0"
    total, free, used = memory(
        system, _folder(system, sources), sources.node, reading, integrated=shares, parts=sources.parts
    )
    return Accelerator(
        index=0,
        vendor=Vendor.AMD,
        name=_name(system, sources, row),
        pci=_pci(sources),
        uuid=_uuid(sources),
        arch=arch,
        memory_total=total,
        memory_free=free,
        memory_used=used,
        support=verdict if isinstance(arch, Known) else Support.UNKNOWN,
        support_reason=reason,
        present=Known(value=True, how=_proof(sources)),
        openable=opened,
        usable=_usable(system, sources, opened),
        nodes=() if isinstance(opened, Unknown) else nodes,  # what was not looked at is not missing
        unified=integrated,
        integrated=integrated,
        kernel_driver=sources.device.driver if sources.device else "",
        driver_version=reading.driver if reading else "",
        device_id=sources.device_id,
        partitioning=_partitioning(system, sources),
        partition_mode=_mode(system, sources),
        tenants=reading.tenants if reading else (),
        tool_index=dict(reading.indexes) if reading else {},
        numa_node=_numa(system, sources),
        link_group=f"{sources.node.hive:x}" if sources.node and sources.node.hive else "",
    )


def _pci(sources: Sources) -> str:
    """Of a part its own address: the function digit is the part's number."""
    if sources.node and sources.node.address:
        return sources.node.address
    if sources.device:
        return sources.device.address
    return sources.reading.pci if sources.reading else ""


def _folder(system: System, sources: Sources) -> str:
    if sources.device:
        return folder(system, sources.device)
    node = sources.node
    if node is None:
        return ""
    return folder(
        system, PciDevice(address=node.address, vendor_id=VENDOR_ID, device_id=node.device_id, class_id="038000")
    )


def _name(system: System, sources: Sources, row: Card | None) -> str:
    written = glance(system, f"{_folder(system, sources)}/product_name") if sources.device else ""
    said = sources.reading.name if sources.reading else ""
    return (
        written
        or said
        or (row.name if row else f"AMD {sources.device_id}".strip() if sources.device_id else "AMD card")
    )


def _uuid(sources: Sources) -> str:
    """As ROCR_VISIBLE_DEVICES takes it. The kernel's number is that of the whole card, so a part has none."""
    reading, node = sources.reading, sources.node
    if node and node.unique_id and not sources.is_part:
        return f"GPU-{node.unique_id:016x}"
    if reading and reading.hip_uuid and not sources.is_part:
        return reading.hip_uuid
    return reading.uuid if reading else ""


def _arch(sources: Sources, row: Card | None) -> Fact[str]:
    if sources.node:
        return Known(sources.node.arch, "gfx_target_version of the KFD topology")
    if sources.reading and sources.reading.arch:
        return Known(sources.reading.arch, sources.reading.tool)
    if row:
        return Known(row.arch, "table of device ids")
    return Unknown(
        f"device id {sources.device_id} is in no table of this version" if sources.device_id else "no device id"
    )


def _proof(sources: Sources) -> str:
    if sources.device and sources.device.address:
        return f"PCI function {sources.device.address}"
    return kfd.NODES if sources.node else sources.reading.tool if sources.reading else "/sys/devices/platform"


def _nodes(system: System, sources: Sources) -> tuple[DeviceNode, ...]:
    """/dev/kfd and the card's own render node. Its number is not 128 + index: partitions and other GPUs shift it."""
    names_here = [f"renderD{sources.node.render_minor}"] if sources.node and sources.node.render_minor else []
    names_here += [sources.render] if sources.render else []
    names_here += [sources.reading.render] if sources.reading and sources.reading.render else []
    if not sources.is_part or not names_here:
        drm = f"{_folder(system, sources)}/drm"
        names_here += [name for name in names(system, drm) if re.fullmatch(r"renderD\d+", name)]
    if not names_here and _is_hearsay(sources):
        here = _render_nodes(system)
        names_here = here if len(here) == 1 else []
    render = f"/dev/dri/{names_here[0]}" if names_here else ""
    last = tried(system, render) if render else DeviceNode(path="/dev/dri/renderD*", opened="ENOENT")
    return (tried(system, "/dev/kfd"), last)


def _is_hearsay(sources: Sources) -> bool:
    """A tool speaks of a card that neither the bus nor the topology shows here."""
    return sources.device is None and sources.node is None


def _render_nodes(system: System) -> list[str]:
    return [name for name in names(system, "/dev/dri") if re.fullmatch(r"renderD\d+", name)]


def _openable(system: System, sources: Sources, nodes: Sequence[DeviceNode]) -> Fact[bool]:
    if _is_hearsay(sources) and nodes[-1].path.endswith("*") and len(_render_nodes(system)) > 1:
        return Unknown("which of the render nodes here is its nobody said")
    if sources.device or sources.node or exists(system, "/dev/kfd") or names(system, "/dev"):
        return openable(nodes)
    tool = sources.reading.tool if sources.reading else "a tool"
    return Unknown(f"only {tool} speaks of this card; no device node was looked at")


def _usable(system: System, sources: Sources, opened: Fact[bool]) -> Fact[bool]:
    if sources.device and sources.device.driver == "vfio-pci":
        return Known(value=False, how="set aside for a virtual machine (vfio-pci)")
    if isinstance(opened, Unknown):
        return opened
    if not opened.value:
        wrong = kfd.wrong_major(system) if "/dev/kfd: EINVAL" in opened.how else ""
        return Known(value=False, how=f"not openable: {opened.how}" + (f" ({wrong})" if wrong else ""))
    if sources.node:
        return Known(value=True, how="node of the KFD topology, and it opened")
    return _without_node(sources)


def _without_node(sources: Sources) -> Fact[bool]:
    """Its nodes open, and ROCm's topology does not have it."""
    if sources.contradiction:
        return Known(value=False, how=sources.contradiction)
    if sources.masked:
        return Known(
            value=False,
            how=f"{sources.masked} node(s) of the KFD topology refuse to be read: not granted to this container",
        )
    if sources.device:
        return Known(value=False, how="amdgpu has made no KFD node for it")
    return Unknown("its nodes open, and no KFD topology is here to say that it computes")


def _partitioning(system: System, sources: Sources) -> Partitioning:
    if sources.is_part or sources.modes[0] in ("DPX", "TPX", "QPX", "CPX"):
        return Partitioning.COMPUTE
    if sources.device and (
        exists(system, f"{_folder(system, sources)}/physfn") or is_virtual_function(VENDOR_ID, sources.device_id)
    ):
        return Partitioning.SRIOV_VF
    return Partitioning.NONE


def _mode(system: System, sources: Sources) -> str:
    modes = "/".join(mode for mode in sources.modes if mode)
    guests = number(glance(system, f"{_folder(system, sources)}/sriov_numvfs")) or 0
    return modes or (f"{guests} virtual functions" if guests > 0 else "")


def _numa(system: System, sources: Sources) -> int | None:
    """-1 is what a virtual machine and a machine with one node say."""
    found = number(glance(system, f"{_folder(system, sources)}/numa_node"))
    return found if found is not None and found >= 0 else None
