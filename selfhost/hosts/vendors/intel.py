"""Intel cards: PCI and the render node; there is no other node. What the table does not list is integrated graphics."""

from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts import intel_stack, intel_tools
from selfhost.hosts.intel_card import VENDOR_ID, Sources, accelerator, is_discrete
from selfhost.hosts.pci_table import is_display
from selfhost.hosts.xpu_smi import XpuReading
from selfhost.shapes.host import Accelerator, Link, PciDevice
from selfhost.shapes.surroundings import DriverStack


def read(system: System, pci: Sequence[PciDevice]) -> tuple[Accelerator, ...]:
    """Displays only: Intel's functions of class 0x12 are neural processing units, which are another thing."""
    devices = [device for device in pci if device.vendor_id == VENDOR_ID and is_display(device)]
    discrete = [device for device in devices if is_discrete(system, device)]
    if not discrete and not intel_tools.is_recorded(system):
        # No program is started for integrated graphics, which no engine uses.
        return tuple(accelerator(system, Sources(device=device)) for device in devices)
    answer = intel_tools.ask(system)
    readings, runtime = list(answer.cards), list(answer.runtime)
    found: list[Sources] = []
    for device in devices:
        reading = _take(readings, device, devices)
        name = reading.name if reading else ""
        found.append(
            Sources(
                device=device,
                reading=reading,
                runtime=_named(runtime, name, alone=len(devices) == 1),
                failure=answer.failure,
            )
        )
    # Without an address it is one of those on the bus, and which one nobody said.
    left = [one for one in readings if not devices or one.pci]
    found += [Sources(reading=one, runtime=_named(runtime, one.name, alone=len(left) == 1)) for one in left]
    if not found:
        found = [Sources(runtime=one) for one in runtime]
    return tuple(accelerator(system, source) for source in found)


def stack(system: System, cards: Sequence[Accelerator]) -> DriverStack | None:
    """The driver around the cards; None on a machine with nothing of Intel's."""
    return intel_stack.read(system, cards)


def topology(system: System, cards: Sequence[Accelerator]) -> tuple[Link, ...]:
    """Xe Link is read from no file and no tool of a supported machine: nothing is claimed."""
    del system, cards
    return ()


def _take(readings: list[XpuReading], device: PciDevice, devices: Sequence[PciDevice]) -> XpuReading | None:
    """xpu-smi's word on this card: by address, or by a device id that only one card and one answer have."""
    for reading in readings:
        if reading.pci == device.address and reading.pci:
            readings.remove(reading)
            return reading
    alike = [one for one in readings if not one.pci and one.device_id == device.device_id]
    if len(alike) == 1 and sum(other.device_id == device.device_id for other in devices) == 1:
        readings.remove(alike[0])
        return alike[0]
    nameless = [one for one in readings if not one.pci and not one.device_id]
    if len(nameless) == len(readings) == len(devices) == 1:
        return readings.pop()
    return None


def _named(runtime: Sequence[XpuReading], name: str, *, alone: bool) -> XpuReading | None:
    """What Level Zero lists under the very name; of two of the same name it does not say which is which."""
    alike = [one for one in runtime if name and one.name == name]
    if len(alike) == 1:
        return alike[0]
    return runtime[0] if alone and len(runtime) == 1 else None
