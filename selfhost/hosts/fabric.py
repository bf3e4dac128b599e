"""NVSwitches, and the fabric manager without which cards behind them refuse to start CUDA."""

import re
from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts.glance import glance, names
from selfhost.hosts.pci import BUS
from selfhost.shapes.host import Accelerator

_BRIDGE, _NVIDIA = "0x0680", "0x10de"
_TIMEOUT_S = 3.0


def switches(system: System) -> int:
    """NVSwitches are bridges of NVIDIA's that are neither host, ISA nor PCI bridges (PCI class 0680)."""
    return sum(
        glance(system, f"{BUS}/{address}/class").startswith(_BRIDGE)
        and glance(system, f"{BUS}/{address}/vendor") == _NVIDIA
        for address in names(system, BUS)
    )


def manager(system: System, cards: Sequence[Accelerator], count: int) -> str:
    """`active 580.95.05`, `inactive`, `failed`, `absent`; empty where no NVSwitch or fabric asks for one."""
    if not count and not any(card.fabric for card in cards):
        return ""
    unit = system.run(("systemctl", "is-active", "nvidia-fabricmanager"), timeout_s=_TIMEOUT_S)
    asked = system.run(("nv-fabricmanager", "--version"), timeout_s=_TIMEOUT_S)
    found = re.search(r"\d{3,}\.\d+(?:\.\d+)?", asked.stdout)
    version = found[0] if found else ""
    state = unit.stdout.strip().splitlines()[0] if unit.stdout.strip() else ""
    if unit.missing and asked.missing:
        return "absent"
    if asked.missing and state in ("inactive", "unknown", ""):
        return "absent"  # systemctl calls a unit that does not exist inactive as well
    return f"{state or 'unknown'} {version}".strip()
