"""What vendors/pci_ids.toml knows: names and architectures by device id, and for what engine builds have code. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.host import PciDevice


@dataclass(frozen=True, slots=True)
class Card:
    """What the table says about a device id."""

    name: str
    arch: str
    integrated: bool = False
    tiles: int = 1


def is_display(device: PciDevice) -> bool:
    return device.class_id.startswith("03")


@cache
def table() -> Mapping[str, Any]:
    return read_table("selfhost.hosts.vendors", "pci_ids.toml")


@cache
def lookup(vendor_id: str, device_id: str) -> Card | None:
    """The row of a card, or None for an id that the table does not know."""
    if not re.fullmatch("[0-9a-f]{1,4}", device_id):
        return None
    wanted = int(device_id, 16)
    for row in table()["card"]["rows"]:
        first, _, last = row["ids"].partition("-")
        if row["vendor"] == vendor_id and int(first, 16) <= wanted <= int(last or first, 16):
            integrated = bool(row.get("integrated", False))
            return Card(
                row["name"] + (" (integrated)" if integrated else ""), row["arch"], integrated, int(row.get("tiles", 1))
            )
    return None


def screen(device: PciDevice) -> str:
    """The name of a display that never computes (a BMC's, a virtual machine's), empty for everything else."""
    if not is_display(device):
        return ""
    for row in table()["display"]["rows"]:
        if row["vendor"] == device.vendor_id and row.get("device", device.device_id) == device.device_id:
            return str(row["name"])
    return ""


def maker(vendor_id: str) -> str:
    """Who makes this processing accelerator, as far as the table knows."""
    named = (str(row["name"]) for row in table()["maker"]["rows"] if row["vendor"] == vendor_id)
    return next(named, f"unknown maker {vendor_id}")


def is_accelerator(device: PciDevice) -> bool:
    """Whether a function of another class is one: its maker makes nothing else, or its id is listed.

    Class 0x0b40 is a co-processor and 0x0880 a peripheral; early accelerators have them, and so has much else.
    """
    for row in table()["maker"]["rows"]:
        if row["vendor"] == device.vendor_id:
            if row.get("only", False) and device.class_id.startswith(("0b40", "03")):
                return True
            return device.device_id in row.get("devices", ())
    return False


def is_virtual_function(vendor_id: str, device_id: str) -> bool:
    """Whether a guest's card is a share of one (SR-IOV), by its id."""
    rows = table()["virtual_function"]["rows"]
    return any(row["vendor"] == vendor_id and device_id in row["devices"] for row in rows)


def tegra_arch(chip: str) -> str:
    """The architecture of a Jetson's chip (`tegra234`), empty for one that the table does not know."""
    return next((str(row["arch"]) for row in table()["tegra"]["rows"] if row["chip"] == chip), "")
