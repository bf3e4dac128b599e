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
            return Card(row["name"] + (" (integrated)" if integrated else ""), row["arch"], integrated)
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


def tegra_arch(chip: str) -> str:
    """The architecture of a Jetson's chip (`tegra234`), empty for one that the table does not know."""
    return next((str(row["arch"]) for row in table()["tegra"]["rows"] if row["chip"] == chip), "")
