"""One Intel card out of what is known of it: the PCI function and what the tools add."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.engine_support import support
from selfhost.hosts.glance import exists, glance, names, number
from selfhost.hosts.nodes import openable, tried
from selfhost.hosts.pci import folder
from selfhost.hosts.pci_table import Card, lookup
from selfhost.hosts.xpu_smi import XpuReading
from selfhost.shapes.host import (
    Accelerator,
    DeviceNode,
    Fact,
    Known,
    Partitioning,
    PciDevice,
    Support,
    Unknown,
    Vendor,
)

VENDOR_ID = "8086"
_DRIVERS = ("xe", "i915")
_ROOT_ONLY = "the kernel tells only root how much of it is free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Everything that speaks of one card."""

    device: PciDevice | None = None
    reading: XpuReading | None = None
    runtime: XpuReading | None = None
    failure: str = ""

    @property
    def tools(self) -> tuple[XpuReading, ...]:
        return tuple(one for one in (self.reading, self.runtime) if one)

    @property
    def device_id(self) -> str:
        return self.device.device_id if self.device else self.reading.device_id if self.reading else ""


def is_discrete(system: System, device: PciDevice) -> bool:
    """Listed among the cards, or with memory of its own."""
    return bool(lookup(VENDOR_ID, device.device_id)) or isinstance(_own_memory(system, device), Known)


def accelerator(system: System, sources: Sources) -> Accelerator:
    device = sources.device
    row = lookup(VENDOR_ID, sources.device_id)
    total = _total(system, sources)
    arch, verdict, reason = _kind(sources, row, total)
    integrated = isinstance(arch, Known) and arch.value == "integrated"
    nodes = (_render_node(system, device),) if device else ()
    opened = openable(nodes) if nodes else Unknown("only a tool speaks of this card; no device node was looked at")
    tiles = _tiles(system, sources, row)
    return Accelerator(
        index=0,
        vendor=Vendor.INTEL,
        name=_name(sources, row, integrated=integrated),
        pci=device.address if device else sources.reading.pci if sources.reading else "",
        uuid=sources.reading.uuid if sources.reading else "",
        arch=arch,
        memory_total=total,
        memory_free=_free(sources),
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how=_proof(sources)),
        openable=opened,
        usable=_usable(opened, sources),
        nodes=nodes,
        unified=integrated,
        integrated=integrated,
        kernel_driver=device.driver if device else "",
        driver_version=next((one.driver for one in sources.tools if one.driver), ""),
        device_id=sources.device_id,
        partitioning=_partitioning(system, device, tiles),
        partition_mode=_mode(system, device, tiles),
        tool_index=_indexes(sources),
        numa_node=_numa(system, device),
    )


def _kind(sources: Sources, row: Card | None, total: Fact[int]) -> tuple[Fact[str], Support, str]:
    if row:
        arch = Known(row.arch, "table of device ids")
        return arch, *support("intel", arch)
    unlisted = Unknown(f"device id {sources.device_id} is in no table of this version")
    if isinstance(total, Known):
        return unlisted, Support.UNKNOWN, unlisted.reason  # memory of its own: a card that is newer than the table
    if sources.device is None:
        named = Unknown("no tool gives its device id") if not sources.device_id else unlisted
        return named, Support.UNKNOWN, named.reason
    integrated = Known("integrated", "not among the ids of Intel's cards")
    return integrated, Support.UNSUPPORTED, "no engine build has code for Intel's integrated graphics"


def _name(sources: Sources, row: Card | None, *, integrated: bool) -> str:
    """xpu-smi names a card that it does not know by its id; the table may know better."""
    said = next((one.name for one in sources.tools if one.name and "[0x" not in one.name), "")
    if said and not integrated:
        return said
    if row:
        return row.name
    return f"Intel graphics {sources.device_id}".strip() + (" (integrated)" if integrated else "")


def _proof(sources: Sources) -> str:
    if sources.device:
        return f"PCI function {sources.device.address}" if sources.device.address else "/sys/class/drm"
    return sources.tools[0].tool if sources.tools else "/sys/class/drm"


def _render_node(system: System, device: PciDevice) -> DeviceNode:
    found = [name for name in names(system, f"{folder(system, device)}/drm") if re.fullmatch(r"renderD\d+", name)]
    if found:
        return tried(system, f"/dev/dri/{found[0]}")
    by_path = f"/dev/dri/by-path/pci-{device.address}-render"
    node = tried(system, by_path)
    return node if node.opened != "ENOENT" else DeviceNode(path="/dev/dri/renderD*", opened="ENOENT")


def _total(system: System, sources: Sources) -> Fact[int]:
    """The kernel's figure first: a tool's is less what ECC takes."""
    own = _own_memory(system, sources.device) if sources.device else Unknown("no tool gives the size of its memory")
    said = next((one for one in sources.tools if one.total is not None and one.tool == "xpu-smi"), None)
    if isinstance(own, Unknown) and said and said.total is not None:
        return Known(said.total, said.tool)
    return own


def _own_memory(system: System, device: PciDevice) -> Fact[int]:
    """Bytes. `xe` has a file for each tile, i915 one for each discrete card; integrated graphics have neither."""
    base = folder(system, device)
    sizes = [number(glance(system, f"{base}/{tile}/physical_vram_size_bytes")) for tile in _tile_names(system, base)]
    if sizes and all(sizes):
        return Known(sum(size or 0 for size in sizes), "physical_vram_size_bytes of every tile")
    for name in names(system, f"{base}/drm"):
        size = number(glance(system, f"{base}/drm/{name}/lmem_total_bytes"))
        if size:
            return Known(size, f"{base}/drm/{name}/lmem_total_bytes")
    return Unknown("the kernel driver gives no size of its memory")


def _free(sources: Sources) -> Fact[int]:
    reading = sources.reading
    return Known(reading.free, reading.tool) if reading and reading.free is not None else Unknown(_ROOT_ONLY)


def _tile_names(system: System, base: str) -> Sequence[str]:
    return [name for name in names(system, base) if re.fullmatch(r"tile\d+", name)]


def _tiles(system: System, sources: Sources, row: Card | None) -> int:
    """Compute tiles: each is a device of its own under Level Zero's default (FLAT)."""
    seen = len(_tile_names(system, folder(system, sources.device))) if sources.device else 0
    said = sources.reading.tiles if sources.reading else 0
    return seen or said or (row.tiles if row else 0)


def _is_function_of_another(system: System, device: PciDevice | None) -> bool:
    return device is not None and exists(system, f"{folder(system, device)}/physfn")


def _partitioning(system: System, device: PciDevice | None, tiles: int) -> Partitioning:
    if _is_function_of_another(system, device):
        return Partitioning.SRIOV_VF
    return Partitioning.TILE if tiles > 1 else Partitioning.NONE


def _mode(system: System, device: PciDevice | None, tiles: int) -> str:
    if _is_function_of_another(system, device):
        return ""
    guests = number(glance(system, f"{folder(system, device)}/sriov_numvfs")) or 0 if device else 0
    texts = (f"{tiles} tiles" if tiles > 1 else "", f"{guests} virtual functions" if guests > 0 else "")
    return ", ".join(text for text in texts if text)


def _usable(opened: Fact[bool], sources: Sources) -> Fact[bool]:
    driver = sources.device.driver if sources.device else ""
    if driver == "vfio-pci":
        return Known(value=False, how="set aside for a virtual machine (vfio-pci)")
    if isinstance(opened, Unknown):
        return opened
    if not opened.value:
        return Known(value=False, how=f"not openable: {opened.how}")
    if driver not in _DRIVERS:
        return Known(value=False, how=f"bound to {driver or 'no driver'}, not to xe or i915")
    if "Level Zero does not start" in sources.failure and not sources.tools:
        return Known(value=False, how=sources.failure)
    return Known(value=True, how=f"bound to {driver}, and its render node opened")


def _indexes(sources: Sources) -> dict[str, int]:
    found = {"xpu-smi": sources.reading.index if sources.reading else None}
    found["level-zero"] = sources.runtime.level_zero if sources.runtime else None
    return {tool: index for tool, index in found.items() if index is not None}


def _numa(system: System, device: PciDevice | None) -> int | None:
    """-1 is what a virtual machine and a machine with one node say."""
    found = number(glance(system, f"{folder(system, device)}/numa_node")) if device else None
    return found if found is not None and found >= 0 else None
