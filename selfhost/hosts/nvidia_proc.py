"""What the NVIDIA kernel module writes in /proc and /sys: its version, and each card's uuid and minor."""

import re
from collections.abc import Mapping, Sequence

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, names, pairs
from selfhost.shapes.host import Fact, Known, PciDevice, Unknown

PROC = "/proc/driver/nvidia"
_MODULE = "/sys/module/nvidia"
# Both flavours of the module (NVIDIA/open-gpu-kernel-modules), with or without the architecture's name.
_VERSION = re.compile(r"NVRM version: NVIDIA UNIX (Open )?.*?Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")


def module(system: System) -> Fact[str]:
    """Version of the loaded module."""
    found = _VERSION.search(glance(system, f"{PROC}/version"))
    if found:
        return Known(found[2], f"{PROC}/version")
    written = glance(system, f"{_MODULE}/version")
    if re.fullmatch(r"\d+(\.\d+)+", written, re.ASCII):
        return Known(written, f"{_MODULE}/version")
    return Unknown(f"{PROC}/version does not exist: no NVIDIA kernel module is loaded")


def flavour(system: System) -> str:
    """`open` or `proprietary`, as the module calls itself; empty when it says nothing."""
    found = _VERSION.search(glance(system, f"{PROC}/version"))
    if not found:
        return ""
    return "open" if found[1] else "proprietary"


def is_loaded(system: System) -> Fact[bool]:
    """By the module's own files, its line in /proc/modules, or a Jetson's module."""
    for path in (f"{PROC}/version", _MODULE, "/sys/module/nvgpu"):
        if exists(system, path):
            return Known(value=True, how=path)
    modules = glance(system, "/proc/modules")
    if re.search(r"(?m)^(nvidia|nvgpu) ", modules):
        return Known(value=True, how="/proc/modules")
    return Known(value=False, how=f"neither {PROC}/version nor {_MODULE} exists")


def information(system: System) -> Mapping[str, Mapping[str, str]]:
    """`Model`, `GPU UUID`, `Device Minor`… by PCI address."""
    return {
        address.lower(): pairs(glance(system, f"{PROC}/gpus/{address}/information"), separator=":")
        for address in names(system, f"{PROC}/gpus")
    }


def uuid_of(written: Mapping[str, str]) -> str:
    """Before the card has been started once the driver writes question marks: `GPU-????????-????-…`."""
    uuid = written.get("GPU UUID", "")
    return uuid if uuid.startswith("GPU-") and "?" not in uuid else ""


def minors(
    devices: Sequence[PciDevice], written: Mapping[str, Mapping[str, str]], said: Mapping[str, int]
) -> Mapping[str, int]:
    """Device minor by PCI address.

    The driver writes it down, and `said` is what its tools said; where neither did (a driver older than that, a card
    that this container was not granted) minors follow the order of addresses, unless another card owns the number.
    """
    known = dict(said)
    for address, lines in written.items():
        if lines.get("Device Minor", "").isdecimal():
            known[address] = int(lines["Device Minor"])
    taken = set(known.values())
    # One that was set aside for a virtual machine has no minor.
    driven = [device for device in devices if device.driver != "vfio-pci"]
    guessed = {
        device.address: number
        for number, device in enumerate(driven)
        if device.address not in known and number not in taken
    }
    return {**guessed, **known}
