"""Accelerators of makers that no engine build here has code for: named, never used, never counted as a GPU."""

import re
from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts.glance import glance, names
from selfhost.hosts.nodes import openable, tried
from selfhost.hosts.pci import BUS
from selfhost.hosts.pci_table import is_accelerator, is_display, maker
from selfhost.shapes.host import Accelerator, DeviceNode, Fact, Known, Partitioning, PciDevice, Support, Unknown, Vendor

_KNOWN_ELSEWHERE = ("10de", "1002")


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    return tuple(
        _card(system, device)
        for device in pci
        if device.vendor_id not in _KNOWN_ELSEWHERE and (not is_display(device) or is_accelerator(device))
    )


def _card(system: System, device: PciDevice) -> Accelerator:
    reason = Unknown("not looked into: no current engine build can use it")
    nodes = _nodes(system, device)
    reserved = device.driver == "vfio-pci"
    usable: Fact[bool] = Known(value=False, how="set aside for a virtual machine (vfio-pci)") if reserved else reason
    physical = names(system, f"{BUS}/{device.address}/physfn") if device.address else ()
    return Accelerator(
        index=0,
        vendor=Vendor.OTHER,
        name=f"{maker(device.vendor_id)} accelerator {device.vendor_id}:{device.device_id}",
        pci=device.address,
        arch=reason,
        memory_total=reason,
        memory_free=reason,
        support=Support.UNSUPPORTED,
        support_reason="not supported by a current engine",
        present=Known(value=True, how=f"PCI function {device.address}"),
        openable=openable(nodes) if nodes else reason,
        usable=usable,
        nodes=nodes,
        kernel_driver=device.driver,
        device_id=device.device_id,
        partitioning=Partitioning.SRIOV_VF if physical else Partitioning.NONE,
        numa_node=_numa(system, device),
    )


def _nodes(system: System, device: PciDevice) -> tuple[DeviceNode, ...]:
    """Of the kernel's accel class only: /dev/accel/accel0, which is of any maker, so the bus decides whose it is."""
    found = [name for name in names(system, f"{BUS}/{device.address}/accel") if re.fullmatch(r"accel\d+", name)]
    return tuple(tried(system, f"/dev/accel/{name}") for name in found)


def _numa(system: System, device: PciDevice) -> int | None:
    found = glance(system, f"{BUS}/{device.address}/numa_node")
    return int(found) if re.fullmatch(r"\d{1,4}", found, re.ASCII) else None
