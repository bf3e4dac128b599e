"""Display and processing functions on the PCI bus."""

import posixpath

from selfhost.core.system import System
from selfhost.hosts.glance import glance, names
from selfhost.shapes.host import PciDevice

BUS = "/sys/bus/pci/devices"
_DISPLAY, _PROCESSING = "0x03", "0x12"


def scan(system: System) -> tuple[PciDevice, ...]:
    """Every function of class 0x03 (display) or 0x12 (processing accelerator), in order of address.

    sysfs is not namespaced: inside a container this shows the machine's cards, granted or not.
    """
    found: list[PciDevice] = []
    for address in names(system, BUS):
        class_id = glance(system, f"{BUS}/{address}/class")
        if class_id.startswith((_DISPLAY, _PROCESSING)):
            found.append(
                PciDevice(
                    address=address,
                    vendor_id=_hex(glance(system, f"{BUS}/{address}/vendor")),
                    device_id=_hex(glance(system, f"{BUS}/{address}/device")),
                    class_id=_hex(class_id),
                    driver=_driver(system, address),
                )
            )
    return tuple(found)


def _hex(text: str) -> str:
    return text.lower().removeprefix("0x")


def _driver(system: System, address: str) -> str:
    try:
        return posixpath.basename(system.readlink(f"{BUS}/{address}/driver"))
    except OSError:
        return ""  # bound to none
