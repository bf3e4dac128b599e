"""Processing accelerators (PCI class 0x12) of makers that no engine build here has code for: named, never used."""

from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts.pci_table import is_display, maker
from selfhost.shapes.host import Accelerator, Known, PciDevice, Support, Unknown, Vendor

_KNOWN_ELSEWHERE = ("10de", "1002")


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    del system
    return tuple(_card(device) for device in pci if not is_display(device) and device.vendor_id not in _KNOWN_ELSEWHERE)


def _card(device: PciDevice) -> Accelerator:
    reason = Unknown("not looked into: no current engine build can use it")
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
        openable=reason,
        usable=reason,
        kernel_driver=device.driver,
    )
