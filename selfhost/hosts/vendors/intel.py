"""Intel cards: PCI and the render node; there is no other node. What the table does not list is integrated graphics."""

import re
from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts.engine_support import support
from selfhost.hosts.glance import glance, names, number
from selfhost.hosts.nodes import openable, tried
from selfhost.hosts.pci import BUS
from selfhost.hosts.pci_table import is_display, lookup
from selfhost.shapes.host import Accelerator, DeviceNode, Fact, Known, PciDevice, Support, Unknown, Vendor

VENDOR_ID = "8086"
_DRIVERS = ("xe", "i915")


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    """Displays only: Intel's functions of class 0x12 are neural processing units, which are another thing."""
    return tuple(_card(system, device) for device in pci if device.vendor_id == VENDOR_ID and is_display(device))


def _card(system: System, device: PciDevice) -> Accelerator:
    row = lookup(VENDOR_ID, device.device_id)
    total = _memory(system, device)
    if row:
        arch: Fact[str] = Known(row.arch, "table of device ids")
        verdict, reason = support("intel", arch)
    elif isinstance(total, Known):
        # Memory of its own: a card that is newer than the table.
        arch = Unknown(f"device id {device.device_id} is in no table of this version")
        verdict, reason = Support.UNKNOWN, arch.reason
    else:
        arch = Known("integrated", "not among the ids of Intel's cards")
        verdict, reason = Support.UNSUPPORTED, "no engine build has code for Intel's integrated graphics"
    nodes = (_render_node(system, device),)
    opened = openable(nodes)
    return Accelerator(
        index=0,
        vendor=Vendor.INTEL,
        name=row.name if row else f"Intel graphics {device.device_id}" + (" (integrated)" if verdict is _NO else ""),
        pci=device.address,
        arch=arch,
        memory_total=total,
        memory_free=Unknown("the kernel tells only root how much of it is free"),
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how=f"PCI function {device.address}"),
        openable=opened,
        usable=_usable(opened, device.driver),
        nodes=nodes,
        unified=verdict is _NO,
        kernel_driver=device.driver,
    )


_NO = Support.UNSUPPORTED


def _render_node(system: System, device: PciDevice) -> DeviceNode:
    found = [name for name in names(system, f"{BUS}/{device.address}/drm") if re.fullmatch(r"renderD\d+", name)]
    if found:
        return tried(system, f"/dev/dri/{found[0]}")
    by_path = f"/dev/dri/by-path/pci-{device.address}-render"
    node = tried(system, by_path)
    return node if node.opened != "ENOENT" else DeviceNode(path="/dev/dri/renderD*", opened="ENOENT")


def _memory(system: System, device: PciDevice) -> Fact[int]:
    """Bytes. `xe` has a file for each tile, i915 one for each discrete card; integrated graphics have neither."""
    base = f"{BUS}/{device.address}"
    tiles = [name for name in names(system, base) if re.fullmatch(r"tile\d+", name)]
    sizes = [number(glance(system, f"{base}/{tile}/physical_vram_size_bytes")) for tile in tiles]
    if sizes and all(sizes):
        return Known(sum(size or 0 for size in sizes), "physical_vram_size_bytes of every tile")
    for name in names(system, f"{base}/drm"):
        size = number(glance(system, f"{base}/drm/{name}/lmem_total_bytes"))
        if size:
            return Known(size, f"{base}/drm/{name}/lmem_total_bytes")
    return Unknown("the kernel driver gives no size of its memory")


def _usable(opened: Fact[bool], driver: str) -> Fact[bool]:
    if isinstance(opened, Known) and not opened.value:
        return Known(value=False, how=f"not openable: {opened.how}")
    if driver in _DRIVERS:
        return Known(value=True, how=f"bound to {driver}, and its render node opened")
    return Known(value=False, how=f"bound to {driver or 'no driver'}, not to xe or i915")
