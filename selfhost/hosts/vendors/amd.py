"""AMD cards: PCI, the KFD topology that ROCm itself reads, device nodes; what the tools add, and the driver around."""

from collections.abc import Sequence

from selfhost.core.recorded import Recorded
from selfhost.core.system import System
from selfhost.hosts import amd_stack, amd_tools, amd_topology, kfd
from selfhost.hosts.amd_card import VENDOR_ID, Sources, accelerator
from selfhost.hosts.amd_partitions import mode, parts_of, platform_nodes
from selfhost.hosts.amd_reading import Reading
from selfhost.hosts.engine_support import support
from selfhost.hosts.kfd import KfdNode, Topology, gfx_name
from selfhost.hosts.pci import folder
from selfhost.hosts.pci_table import lookup, screen
from selfhost.shapes.host import Accelerator, DeviceNode, Known, Link, PciDevice, Support, Unknown, Vendor
from selfhost.shapes.surroundings import DriverStack

__all__ = ["gfx_name", "read", "stack", "topology"]


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    devices = tuple(device for device in pci if device.vendor_id == VENDOR_ID and not screen(device))
    found = kfd.read(system)
    if not devices and not found.nodes and not found.masked and not amd_tools.is_recorded(system):
        return ()  # nothing of AMD's is here, so no program is started
    readings = list(amd_tools.ask(system).cards) if _is_asked(system, devices, found) else []
    sources = _on_the_bus(system, devices, found, readings)
    # A card whose sysfs entry on the bus is hidden is still a node of the topology.
    placed = {source.node.entry for source in sources if source.node}
    sources += _off_the_bus(system, [node for node in found.nodes if node.entry not in placed], readings)
    unplaced = sum(source.node is None for source in sources)
    cards = [accelerator(system, source) for source in sources]
    cards += [_masked(entry) for entry in found.masked[unplaced:]]
    known = {card.pci for card in cards}
    alone = readings if not cards else [one for one in readings if one.pci and one.pci not in known]
    cards += [accelerator(system, Sources(reading=reading)) for reading in alone]
    return tuple(cards)


def _is_asked(system: System, devices: Sequence[PciDevice], found: Topology) -> bool:
    """No program is started for the small graphics inside a processor, which no engine uses."""
    ids = [*(device.device_id for device in devices), *(node.device_id for node in found.nodes)]
    rows = [lookup(VENDOR_ID, device_id) for device_id in ids]
    worth = [row is None or not row.integrated or _has_code(row.arch) for row in rows]
    return isinstance(system, Recorded) or any(worth)


def _has_code(arch: str) -> bool:
    return support("amd", Known(arch, "table of device ids"))[0] is Support.SUPPORTED


def stack(system: System, cards: Sequence[Accelerator]) -> DriverStack | None:
    """The driver around the cards; None on a machine with nothing of AMD's."""
    return amd_stack.read(system, cards)


def topology(system: System, cards: Sequence[Accelerator]) -> tuple[Link, ...]:
    """How the cards reach each other, by `Accelerator.index`."""
    return amd_topology.read(system, cards)


def _on_the_bus(
    system: System, devices: Sequence[PciDevice], found: Topology, readings: list[Reading]
) -> list[Sources]:
    """Takes the readings that it uses out of `readings`."""
    sources: list[Sources] = []
    functions = [device.address for device in devices]
    for device in devices:
        parts = parts_of(device.address, found.nodes, functions) or _only_of_its_kind(device, devices, found.nodes)
        extra = () if found.nodes or len(devices) > 1 else platform_nodes(system)
        modes = mode(system, folder(system, device), parts)
        count = len(parts) or 1 + len(extra)
        for node in parts or (None,):
            reading = _take(readings, device, node, alone=len(devices) == 1) or _by_address(readings, device, count)
            said = (reading.compute, reading.memory_mode) if reading else ("", "")
            sources.append(
                Sources(
                    device=device,
                    node=node,
                    reading=reading,
                    parts=count,
                    modes=(modes[0] or said[0], modes[1] or said[1]),
                    contradiction=_contradiction(devices, found) if node is None else "",
                    masked=len(found.masked),
                )
            )
        sources += [Sources(device=device, parts=count, modes=modes, render=render) for render in extra]
    return sources


def _only_of_its_kind(device: PciDevice, devices: Sequence[PciDevice], nodes: Sequence[KfdNode]) -> tuple[KfdNode, ...]:
    """Old kernels write no location: then the device id decides, where only one card and one node have it."""
    twins = [other for other in devices if other.device_id == device.device_id]
    unplaced = [node for node in nodes if not node.address and node.device_id == device.device_id]
    return tuple(unplaced[:1]) if len(twins) == 1 else ()


def _contradiction(devices: Sequence[PciDevice], found: Topology) -> str:
    """Said of a card without a node only where it can be this card's."""
    is_clear = len(devices) == 1 or not found.nodes
    return found.contradictions[0] if found.contradictions and is_clear else ""


def _off_the_bus(system: System, nodes: Sequence[KfdNode], readings: list[Reading]) -> list[Sources]:
    by_slot: dict[str, list[KfdNode]] = {}
    for node in nodes:
        by_slot.setdefault(node.slot or f"node {node.entry}", []).append(node)
    sources: list[Sources] = []
    for parts in by_slot.values():
        for node in parts:
            reading = _take(readings, None, node, alone=len(nodes) == 1)
            place = PciDevice(address=node.address, vendor_id=VENDOR_ID, device_id=node.device_id, class_id="038000")
            said = (reading.compute, reading.memory_mode) if reading else ("", "")
            modes = mode(system, folder(system, place), parts, said=said)
            sources.append(Sources(node=node, reading=reading, parts=len(parts), modes=modes))
    return sources


def _take(readings: list[Reading], device: PciDevice | None, node: KfdNode | None, *, alone: bool) -> Reading | None:
    """The tools' word on this card, by render node, KFD number or address; never by its place in a list."""
    for reading in readings:
        if _is_of(reading, device, node):
            readings.remove(reading)
            return reading
    nameless = [one for one in readings if not (one.pci or one.render or one.kfd_id or one.node)]
    if alone and len(readings) == 1 and nameless:
        return readings.pop()
    return None


def _by_address(readings: list[Reading], device: PciDevice, parts: int) -> Reading | None:
    """For a whole card its address is enough, whatever other numbers a tool gives it (an image older than the card)."""
    at = [reading for reading in readings if reading.pci and reading.pci == device.address]
    if parts != 1 or len(at) != 1:
        return None
    readings.remove(at[0])
    return at[0]


def _is_of(reading: Reading, device: PciDevice | None, node: KfdNode | None) -> bool:
    if node:
        if reading.render:
            return reading.render == f"renderD{node.render_minor}"
        if reading.kfd_id and node.gpu_id:
            return reading.kfd_id == node.gpu_id
        if reading.node:
            return reading.node == node.entry
        if reading.pci and node.address:
            return reading.pci == node.address
    return bool(device and device.address and reading.pci == device.address)


def _masked(entry: str) -> Accelerator:
    """A card of which this container sees no more than that it exists."""
    path = f"{kfd.NODES}/{entry}/properties"
    hidden = Unknown(f"{path} refuses to be read")
    return Accelerator(
        index=0,
        vendor=Vendor.AMD,
        name=f"AMD card (KFD node {entry})",
        arch=hidden,
        memory_total=hidden,
        memory_free=hidden,
        support=Support.UNKNOWN,
        support_reason="its kind cannot be read here",
        present=Known(value=True, how=kfd.NODES),
        openable=Known(value=False, how=f"{path}: EPERM"),
        usable=Known(value=False, how="masked by the device rules (cgroup) of this container"),
        nodes=(DeviceNode(path="/dev/dri/renderD*", opened="EPERM"),),
    )
