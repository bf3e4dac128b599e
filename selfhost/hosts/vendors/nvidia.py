"""NVIDIA cards: NVML and nvidia-smi over PCI, /proc/driver/nvidia and device nodes; Jetson and WSL2 have no PCI."""

import re
from collections.abc import Mapping, Sequence

from selfhost.core.system import System
from selfhost.hosts import nvidia_proc, nvidia_stack, nvidia_tools, nvidia_topology
from selfhost.hosts.cpu import architecture
from selfhost.hosts.glance import exists, glance, names
from selfhost.hosts.nodes import tried
from selfhost.hosts.nvidia_card import VENDOR_ID, Sources, accelerator
from selfhost.hosts.nvidia_reading import Answer, Reading
from selfhost.hosts.nvidia_smi import recorded
from selfhost.hosts.pci_table import tegra_arch
from selfhost.shapes.host import Accelerator, DeviceNode, Fact, Known, Link, PciDevice, Unknown, Vendor
from selfhost.shapes.surroundings import DriverStack

_WINDOWS_CUDA = "/usr/lib/wsl/lib/libcuda.so.1"


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    """Cards on the bus first, then those that only the driver's tools or the device tree know."""
    devices = tuple(device for device in pci if device.vendor_id == VENDOR_ID)
    tegra = _tegra(system)
    if not devices and not tegra and not _asks_anyway(system):
        return ()  # nothing of NVIDIA's is here, so no program is started
    answer = nvidia_tools.ask(system)
    written = nvidia_proc.information(system)
    on_bus = _on_the_bus(system, devices, written, answer)
    off_bus = _off_the_bus(system, on_bus, tegra, answer)
    return tuple(accelerator(system, sources) for sources in (*on_bus, *off_bus))


def stack(system: System, cards: Sequence[Accelerator]) -> DriverStack | None:
    """The driver around the cards; None on a machine with nothing of NVIDIA's."""
    return nvidia_stack.read(system, cards)


def topology(system: System, cards: Sequence[Accelerator]) -> tuple[Link, ...]:
    """How the cards reach each other, by `Accelerator.index`."""
    return nvidia_topology.read(system, cards)


def driver(system: System, cards: Sequence[Accelerator]) -> Fact[str]:
    """The kernel module's version; under WSL2 the one of Windows, as the driver's tools give it."""
    found = nvidia_proc.module(system)
    if isinstance(found, Unknown) and any(card.vendor is Vendor.NVIDIA for card in cards):
        answer = nvidia_tools.last(system)
        return Known(answer.driver, answer.driver_how) if answer.driver else found
    return found


def _asks_anyway(system: System) -> bool:
    """Under WSL2 a card comes through /dev/dxg; where the bus is hidden, nodes and the module still are there."""
    marks = ("/dev/dxg", "/dev/nvidiactl", f"{nvidia_proc.PROC}/version")
    return any(exists(system, path) for path in marks) or bool(recorded(system))


def _tegra(system: System) -> str:
    """What proves a Jetson, with its chip; empty on every other machine."""
    compatible = glance(system, "/proc/device-tree/compatible").replace("\0", " ")
    chip = re.search(r"tegra\d+", compatible)
    if chip:
        return chip[0]
    return "tegra" if exists(system, "/etc/nv_tegra_release") else ""


def _on_the_bus(
    system: System, devices: Sequence[PciDevice], written: Mapping[str, Mapping[str, str]], answer: Answer
) -> list[Sources]:
    """Functions on the PCI bus, and those that only the kernel module names (a sandbox that hides /sys)."""
    seen = {device.address for device in devices}
    hidden = tuple(
        PciDevice(address=address, vendor_id=VENDOR_ID, device_id="", class_id="")
        for address in written
        if address not in seen
    )
    functions = (*devices, *hidden)
    said = {card.bus_id: card.minor for card in answer.cards if card.bus_id and card.minor is not None}
    minors = nvidia_proc.minors(functions, written, said)
    by_bus = _by_address(system, functions, written, minors, answer.cards, answer.faults)
    shared = tuple(tried(system, path) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")) if functions else ()
    machine = architecture(system)
    return [
        Sources(
            answer=answer,
            machine=machine,
            proof=(
                f"PCI function {device.address}"
                if device.address in seen
                else f"{nvidia_proc.PROC}/gpus/{device.address}"
            ),
            nodes=(_own_node(system, minors.get(device.address), listed=device.address in by_bus), *shared),
            device=device,
            reading=by_bus.get(device.address),
            written=written.get(device.address, {}),
        )
        for device in functions
    ]


def _by_address(
    system: System,
    devices: Sequence[PciDevice],
    written: Mapping[str, Mapping[str, str]],
    minors: Mapping[str, int],
    cards: Sequence[Reading],
    lost: Mapping[str, str],
) -> Mapping[str, Reading]:
    """Readings by PCI address. `nvidia-smi -L` gives none: then by uuid, or in order if the numbers agree.

    nvidia-smi lists in the order of addresses; as many functions, or as many nodes, as it lists can only be those.
    """
    found = {card.bus_id: card for card in cards if card.bus_id}
    bare = [card for card in cards if not card.bus_id]
    for address, lines in written.items():
        uuid = nvidia_proc.uuid_of(lines)
        own = next((card for card in bare if card.uuid and card.uuid == uuid), None)
        if own:
            found.setdefault(address, own)
    rest = [card for card in bare if card not in found.values()]
    free = [
        device
        for device in devices
        if device.address not in found and device.driver != "vfio-pci" and device.address not in lost
    ]
    granted = [device for device in free if exists(system, f"/dev/nvidia{minors.get(device.address, 'N')}")]
    for listed in (free, granted):
        # Beside cards that were told apart, only the last one is certain.
        if rest and len(listed) == len(rest) and (not found or len(rest) == 1):
            return found | {device.address: card for device, card in zip(listed, rest, strict=True)}
    return found


def _own_node(system: System, minor: int | None, *, listed: bool) -> DeviceNode:
    """The card's own node. A guessed number is wrong when nvidia-smi lists the card and that node does not open."""
    own = DeviceNode(path="/dev/nvidiaN", opened="ENOENT") if minor is None else tried(system, f"/dev/nvidia{minor}")
    if own.opened == "ENOENT" and listed:
        others = (tried(system, f"/dev/{name}") for name in names(system, "/dev") if re.fullmatch(r"nvidia\d+", name))
        return next((node for node in others if node.opened == "ok"), own)
    return own


def _off_the_bus(system: System, on_bus: Sequence[Sources], tegra: str, answer: Answer) -> list[Sources]:
    """Cards that only the tools know (WSL2, Jetson, a container whose /sys is hidden), or that no tool speaks for."""
    placed = [sources.reading for sources in on_bus if sources.reading]
    machine = architecture(system)
    # Without an address it is one of those on the bus, and which one nobody said.
    others = [card for card in answer.cards if card not in placed and (card.bus_id or not on_bus)]
    found = [
        Sources(
            answer=answer,
            machine=machine,
            proof=card.tool,
            nodes=(_way_in(system, tegra),),
            reading=card,
            fallback_arch=tegra_arch(tegra),
            integrated=bool(tegra),
        )
        for card in others
    ]
    if others or not (tegra or (not on_bus and _is_of_windows(system))):
        return found
    model = glance(system, "/proc/device-tree/model") or glance(system, "/sys/firmware/devicetree/base/model")
    proof = "device tree of a Jetson" if tegra else f"{_WINDOWS_CUDA} beside /dev/dxg"
    return [
        Sources(
            answer=answer,
            machine=machine,
            proof=proof,
            nodes=(_way_in(system, tegra),),
            fallback_name=(model or tegra) if tegra else "NVIDIA card of the Windows machine",
            fallback_arch=tegra_arch(tegra),
            integrated=bool(tegra),
        )
    ]


def _is_of_windows(system: System) -> bool:
    """/dev/dxg is of any vendor; Windows puts NVIDIA's CUDA library beside it only for a card of NVIDIA's."""
    return exists(system, "/dev/dxg") and exists(system, _WINDOWS_CUDA)


def _way_in(system: System, tegra: str) -> DeviceNode:
    if exists(system, "/dev/dxg"):
        return tried(system, "/dev/dxg")
    return tried(system, "/dev/nvmap" if tegra else "/dev/nvidiactl")
