"""Display and processing functions on the PCI bus."""

import posixpath
import re

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, names, pairs
from selfhost.hosts.pci_table import is_accelerator
from selfhost.shapes.host import PciDevice

BUS = "/sys/bus/pci/devices"
_DRM = "/sys/class/drm"
_DISPLAY, _PROCESSING = "0x03", "0x1200"


def scan(system: System) -> tuple[PciDevice, ...]:
    """Every display (class 0x03), processing accelerator (0x1200) and accelerator known by its id, by address.

    sysfs is not namespaced: inside a container this shows the machine's cards, granted or not.
    """
    found: list[PciDevice] = []
    for address in names(system, BUS):
        base = f"{BUS}/{address}"
        class_id = glance(system, f"{base}/class")
        if not class_id:
            continue
        device = _device(system, base, address, class_id)
        if class_id.startswith((_DISPLAY, _PROCESSING)) or is_accelerator(device):
            found.append(device)
    known = {device.address for device in found}
    kinds = {(device.vendor_id, device.device_id) for device in found}
    hidden = (device for device in _of_drm(system) if device.address not in known)
    return (*found, *(one for one in hidden if one.address or (one.vendor_id, one.device_id) not in kinds))


def folder(system: System, device: PciDevice) -> str:
    """Where sysfs keeps the files of `device`: on the bus, or below its DRM card where the bus is not shown."""
    if device.address and exists(system, f"{BUS}/{device.address}"):
        return f"{BUS}/{device.address}"
    cards = [f"{_DRM}/{name}/device" for name in names(system, _DRM) if re.fullmatch(r"card\d+", name)]
    alike = [
        card
        for card in cards
        if _hex(glance(system, f"{card}/device")) == device.device_id
        and _hex(glance(system, f"{card}/vendor")) == device.vendor_id
        and _slot(system, card) in ("", device.address)
    ]
    return alike[0] if len(alike) == 1 else ""


def _of_drm(system: System) -> tuple[PciDevice, ...]:
    """Cards by /sys/class/drm, for places that show it and not the bus."""
    found: list[PciDevice] = []
    for name in names(system, _DRM):
        base = f"{_DRM}/{name}/device"
        class_id = glance(system, f"{base}/class") if re.fullmatch(r"card\d+", name) else ""
        if class_id.startswith((_DISPLAY, _PROCESSING)):
            found.append(_device(system, base, _slot(system, base), class_id))
    return tuple(found)


def _slot(system: System, base: str) -> str:
    """The PCI address by the link, or by `PCI_SLOT_NAME` of uevent."""
    try:
        target = posixpath.basename(system.readlink(base))
    except OSError:
        target = pairs(glance(system, f"{base}/uevent"), separator="=").get("PCI_SLOT_NAME", "")
    return target if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", target) else ""


def _device(system: System, base: str, address: str, class_id: str) -> PciDevice:
    return PciDevice(
        address=address,
        vendor_id=_hex(glance(system, f"{base}/vendor")),
        device_id=_hex(glance(system, f"{base}/device")),
        class_id=_hex(class_id),
        driver=_driver(system, base),
    )


def _hex(text: str) -> str:
    return text.lower().removeprefix("0x")


def _driver(system: System, base: str) -> str:
    try:
        return posixpath.basename(system.readlink(f"{base}/driver"))
    except OSError:
        return ""  # bound to none
