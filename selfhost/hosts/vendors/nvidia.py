"""NVIDIA cards: PCI, /proc/driver/nvidia, device nodes, nvidia-smi; Jetson and WSL2, where there is no PCI function."""

import re
from collections.abc import Mapping, Sequence

from selfhost.core.system import System
from selfhost.hosts.cpu import architecture
from selfhost.hosts.engine_support import support
from selfhost.hosts.glance import exists, glance, names, pairs
from selfhost.hosts.nodes import openable, tried
from selfhost.hosts.nvidia_smi import SmiAnswer, SmiCard, ask
from selfhost.hosts.pci_table import lookup, tegra_arch
from selfhost.shapes.host import Accelerator, DeviceNode, Fact, Known, PciDevice, Unknown, Vendor

VENDOR_ID = "10de"
_PROC = "/proc/driver/nvidia"
# Both flavours of the module (NVIDIA/open-gpu-kernel-modules), with or without the architecture's name.
_VERSION = re.compile(r"NVRM version: NVIDIA UNIX (?:Open )?.*?Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    """Cards on the bus first, then those that only nvidia-smi or the device tree knows."""
    devices = tuple(device for device in pci if device.vendor_id == VENDOR_ID)
    tegra = _tegra(system)
    if not devices and not tegra and not _asks_anyway(system):
        return ()  # nothing of NVIDIA's is here, so no program is started
    machine = architecture(system)
    answer = ask(system)
    by_bus = _by_address(system, devices, answer.cards)
    minors = _minors(system, devices)
    shared = tuple(tried(system, path) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")) if devices else ()
    found = [
        _on_the_bus(system, device, by_bus.get(device.address), answer, minors, shared, machine) for device in devices
    ]
    placed = [by_bus[device.address] for device in devices if device.address in by_bus]
    others = tuple(card for card in answer.cards if card not in placed)
    found += [_without_bus(system, card, tegra, machine) for card in others]
    if tegra and not others:
        found.append(_silent_tegra(system, tegra, answer, machine))
    return tuple(found)


def driver(system: System, cards: Sequence[Accelerator]) -> Fact[str]:
    """The kernel module's version; under WSL2 the one of Windows, as nvidia-smi gives it."""
    found = _VERSION.search(glance(system, f"{_PROC}/version"))
    if found:
        return Known(found[1], f"{_PROC}/version")
    versions = [card.driver_version for card in cards if re.fullmatch(r"\d+(\.\d+)+", card.driver_version)]
    if versions:
        return Known(versions[0], "nvidia-smi driver_version")
    return Unknown(f"{_PROC}/version does not exist: no NVIDIA kernel module is loaded")


def _asks_anyway(system: System) -> bool:
    """Under WSL2 a card comes through /dev/dxg; a card without a visible bus still has its control node."""
    return exists(system, "/dev/dxg") or exists(system, "/dev/nvidiactl")


def _tegra(system: System) -> str:
    """What proves a Jetson, with its chip; empty on every other machine."""
    compatible = glance(system, "/proc/device-tree/compatible").replace("\0", " ")
    chip = re.search(r"tegra\d+", compatible)
    if chip:
        return chip[0]
    return "tegra" if exists(system, "/etc/nv_tegra_release") else ""


def _by_address(system: System, devices: Sequence[PciDevice], cards: Sequence[SmiCard]) -> Mapping[str, SmiCard]:
    """Cards by PCI address. `nvidia-smi -L` gives none: then by uuid, or by order if every function has one."""
    found = {card.bus_id: card for card in cards if card.bus_id}
    bare = [card for card in cards if not card.bus_id]
    for address in names(system, f"{_PROC}/gpus"):
        uuid = pairs(glance(system, f"{_PROC}/gpus/{address}/information"), separator=":").get("GPU UUID", "")
        own = next((card for card in bare if card.uuid == uuid), None)
        if own:
            found[address] = own
    if not found and len(bare) == len(devices):
        found = {device.address: card for device, card in zip(devices, bare, strict=True)}
    return found


def _minors(system: System, devices: Sequence[PciDevice]) -> Mapping[str, int]:
    """Device minor by PCI address.

    The driver writes it down; where it did not (a driver older than that, a card that this container was not granted)
    minors follow the order of addresses, unless another card owns the number.
    """
    written: dict[str, int] = {}
    for address in names(system, f"{_PROC}/gpus"):
        minor = pairs(glance(system, f"{_PROC}/gpus/{address}/information"), separator=":").get("Device Minor", "")
        if minor.isdecimal():
            written[address] = int(minor)
    taken = set(written.values())
    guessed = {
        device.address: number
        for number, device in enumerate(devices)
        if device.address not in written and number not in taken
    }
    return {**guessed, **written}


def _own_node(system: System, minor: int | None, *, listed: bool) -> DeviceNode:
    """The card's own node. A guessed number is wrong when nvidia-smi lists the card and that node does not open."""
    own = DeviceNode(path="/dev/nvidiaN", opened="ENOENT") if minor is None else tried(system, f"/dev/nvidia{minor}")
    if own.opened == "ENOENT" and listed:
        others = (tried(system, f"/dev/{name}") for name in names(system, "/dev") if re.fullmatch(r"nvidia\d+", name))
        return next((node for node in others if node.opened == "ok"), own)
    return own


def _on_the_bus(
    system: System,
    device: PciDevice,
    card: SmiCard | None,
    answer: SmiAnswer,
    minors: Mapping[str, int],
    shared: tuple[DeviceNode, ...],
    machine: str,
) -> Accelerator:
    row = lookup(VENDOR_ID, device.device_id)
    information = pairs(glance(system, f"{_PROC}/gpus/{device.address}/information"), separator=":")
    arch = _arch(card, row.arch if row else "", device.device_id)
    nodes = (_own_node(system, minors.get(device.address), listed=card is not None), *shared)
    opened = openable(nodes)
    verdict, reason = support("nvidia", arch, architecture=machine)
    name = card.name if card else information.get("Model", "") or (row.name if row else f"NVIDIA {device.device_id}")
    return Accelerator(
        index=0,
        vendor=Vendor.NVIDIA,
        name=name,
        pci=device.address,
        uuid=card.uuid if card else information.get("GPU UUID", ""),
        arch=arch,
        memory_total=_memory(card.memory_total if card else _silent(answer), card),
        memory_free=_memory(card.memory_free if card else _silent(answer), card),
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how=f"PCI function {device.address}"),
        openable=opened,
        usable=_usable(opened, card, answer),
        nodes=nodes,
        unified=_is_unified(card, integrated=bool(row and row.integrated)),
        kernel_driver=device.driver,
        driver_version=card.driver if card else "",
    )


def _without_bus(system: System, card: SmiCard, tegra: str, machine: str) -> Accelerator:
    """A card that only nvidia-smi knows: WSL2 (/dev/dxg), Jetson, a container whose sysfs is hidden."""
    arch = _arch(card, tegra_arch(tegra), "")
    verdict, reason = support("nvidia", arch, architecture=machine)
    paths = ("/dev/dxg",) if exists(system, "/dev/dxg") else ("/dev/nvmap",) if tegra else ("/dev/nvidiactl",)
    nodes = tuple(tried(system, path) for path in paths)
    opened = openable(nodes)
    return Accelerator(
        index=0,
        vendor=Vendor.NVIDIA,
        name=card.name,
        pci=card.bus_id,
        uuid=card.uuid,
        arch=arch,
        memory_total=_memory(card.memory_total, card),
        memory_free=_memory(card.memory_free, card),
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how="nvidia-smi"),
        openable=opened,
        usable=_usable(opened, card, SmiAnswer()),
        nodes=nodes,
        unified=_is_unified(card, integrated=bool(tegra)),
        driver_version=card.driver,
    )


def _silent_tegra(system: System, tegra: str, answer: SmiAnswer, machine: str) -> Accelerator:
    arch = _arch(None, tegra_arch(tegra), tegra)
    verdict, reason = support("nvidia", arch, architecture=machine)
    nodes = (tried(system, "/dev/nvmap"),)
    shared: Fact[int] = Unknown("the chip computes in the machine's own memory")
    return Accelerator(
        index=0,
        vendor=Vendor.NVIDIA,
        name=glance(system, "/proc/device-tree/model")
        or glance(system, "/sys/firmware/devicetree/base/model")
        or tegra,
        arch=arch,
        memory_total=shared,
        memory_free=shared,
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how="device tree of a Jetson"),
        openable=openable(nodes),
        usable=_usable(openable(nodes), None, answer),
        nodes=nodes,
        unified=True,
    )


def _arch(card: SmiCard | None, from_table: str, device_id: str) -> Fact[str]:
    if card and isinstance(card.arch, Known):
        return card.arch
    if from_table:
        return Known(from_table, "table of device ids")
    return Unknown(f"device id {device_id or 'unknown'} is in no table of this version")


def _is_unified(card: SmiCard | None, *, integrated: bool) -> bool:
    """By kind first: one driver of the GB10 answers [N/A] for its memory, another the machine's total."""
    return integrated or (card is not None and _is_not_available(card.memory_total))


def _is_not_available(value: Fact[int]) -> bool:
    return isinstance(value, Unknown) and "N/A" in value.reason


def _memory(value: Fact[int], card: SmiCard | None) -> Fact[int]:
    if card and card.mig:
        return Unknown("MIG is on: the memory belongs to its slices")
    if isinstance(value, Unknown) and _is_not_available(value):
        return Unknown(f"{value.reason}: it shares the machine's memory")
    return value


def _silent(answer: SmiAnswer) -> Unknown:
    return Unknown(answer.failure or "nvidia-smi does not list this card")


def _usable(opened: Fact[bool], card: SmiCard | None, answer: SmiAnswer) -> Fact[bool]:
    if isinstance(opened, Known) and not opened.value:
        return Known(value=False, how=f"not openable: {opened.how}")
    if card is None:
        return _silent(answer)
    if card.mig:
        return Unknown("MIG is on, and this version starts engines on whole cards only")
    return Known(value=True, how="nvidia-smi lists it")
