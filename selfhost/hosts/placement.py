"""The placement gate: on which device the engine starts, or why it must not start. Never a silent fallback to the CPU.

A pure function over a Host. *Accelerator* means a device that an engine build has code for; everything else on the bus
is one line of information.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.hosts.engine_support import driver_floor, toolkit
from selfhost.hosts.obstacle import CPU_INSTEAD, Obstacle, obstacle, version
from selfhost.hosts.pci_table import screen
from selfhost.shapes.host import Accelerator, Host, Known, Partitioning, Support, Vendor
from selfhost.shapes.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the engine runs. `device` is `cpu` or the card's uuid; `notes` are for a person, one line each."""

    device: str
    device_name: str
    backend: str
    """`cpu` or `cuda`."""
    accelerators: tuple[Accelerator, ...] = ()
    notes: tuple[str, ...] = ()


def gate(host: Host, asked: str | None) -> Placement:
    """Choose the device for `--device` None, `auto`, `cpu`, or an index, uuid or PCI address.

    Raises EnvironmentMissing when a supported accelerator is there and cannot be used, InputError for one that is not.
    """
    wish = (asked or "auto").strip()
    if wish.lower() == "cpu":
        return _cpu(host, _left_unused(host))
    if wish.lower() != "auto":
        return _on(host, _find(host, wish))
    candidates = [card for card in host.accelerators if _is_candidate(card)]
    ready = [card for card in candidates if _is_startable(card)]
    if ready:
        return _on(host, max(ready, key=_free_bytes))
    if candidates:
        first = min(candidates, key=lambda card: card.vendor is not Vendor.NVIDIA)
        raise obstacle(host, first, others=len(candidates) - 1)
    return _cpu(host, ())


def _is_candidate(card: Accelerator) -> bool:
    """Supported, or too new for our table: neither is passed over in silence. One given to a virtual machine is."""
    return card.support is not Support.UNSUPPORTED and card.kernel_driver != "vfio-pci"


def _is_usable(card: Accelerator) -> bool:
    return isinstance(card.usable, Known) and card.usable.value


def _is_startable(card: Accelerator) -> bool:
    """This version starts engines on whole NVIDIA cards."""
    return _is_usable(card) and card.vendor is Vendor.NVIDIA and card.partitioning is not Partitioning.MIG


def _free_bytes(card: Accelerator) -> tuple[int, int]:
    """Largest free memory first; among equals the first in order."""
    return (card.memory_free.value if isinstance(card.memory_free, Known) else 0, -card.index)


def refusal(host: Host, card: Accelerator) -> Obstacle | None:
    """What the gate would say of this very card; None for one that an engine is started on."""
    if card.support is Support.UNSUPPORTED:
        return Obstacle(
            f"no engine build can use {card.name}",
            short=f"not for engines: {card.support_reason}",
            why=f"{_sentence(card.support_reason)}.",
            fix=(CPU_INSTEAD,),
            id="HX007",
        )
    if not _is_startable(card):
        return obstacle(host, card)
    return old_driver(host)


def _on(host: Host, card: Accelerator) -> Placement:
    refused = refusal(host, card)
    if refused is not None:
        raise refused
    shared = (
        (f"{card.name} computes in the machine's memory; what it takes is taken from there",) if card.unified else ()
    )
    unsure = (f"{card.name}: {card.support_reason}",) if card.support is Support.UNKNOWN else ()
    rest = _lines([other for other in host.accelerators if other is not card])
    return Placement(
        device=card.uuid or card.pci or str(card.index),
        device_name=card.name,
        backend="cuda",
        accelerators=(card,),
        notes=(*unsure, *shared, *rest, *_screens(host)),
    )


def old_driver(host: Host) -> Obstacle | None:
    floor = driver_floor()
    if isinstance(host.driver, Known) and version(host.driver.value)[:1] < version(floor):
        # A Jetson's driver comes with its JetPack and by no other way.
        on_board = any(card.vendor is Vendor.NVIDIA and card.integrated and not card.pci for card in host.accelerators)
        way = "install a JetPack whose" if on_board else "update the"
        rest = "is" if on_board else "of this machine to"
        return Obstacle(
            f"the NVIDIA driver is {host.driver.value}, the engine needs {floor} or later",
            short=f"driver {host.driver.value}, the engine needs {floor} or later",
            why=f"The engine is built with {toolkit()}, which does not start on an older driver. The card is fine.",
            evidence=f"{host.driver.how}: {host.driver.value}",
            fix=(f"{way} driver {rest} {floor} or later, and restart it", CPU_INSTEAD),
            id="HX004",
        )
    return None


def _cpu(host: Host, unused: Sequence[str]) -> Placement:
    told = _lines([card for card in host.accelerators if not (unused and _is_candidate(card))])
    return Placement(
        device="cpu",
        device_name=host.cpu.model,
        backend="cpu",
        notes=(*unused, *told, *_screens(host)),
    )


def _left_unused(host: Host) -> tuple[str, ...]:
    return tuple(f"{_title(card)} is left unused: --device cpu" for card in host.accelerators if _is_candidate(card))


def _lines(cards: Sequence[Accelerator]) -> tuple[str, ...]:
    """One line for each card; cards of one kind that are not granted here share one."""
    found: dict[str, int] = {}
    for card in cards:
        line = f"{card.name} is on the bus, not granted here" if _is_withheld(card) else _line(card)
        found[line] = found.get(line, 0) + 1
    return tuple(f"{line} ({count} times)" if count > 1 else line for line, count in found.items())


def _is_withheld(card: Accelerator) -> bool:
    absent = any(node.opened == "ENOENT" for node in card.nodes)
    return absent and _is_candidate(card)


def _line(card: Accelerator) -> str:
    """Why this one is not the device, in one line."""
    if card.kernel_driver == "vfio-pci":
        return f"{card.name} is set aside for a virtual machine (vfio-pci)"
    if card.support is Support.UNSUPPORTED:
        return f"{card.name} is not used: {card.support_reason}"
    if _is_usable(card):
        return f"{_title(card)} is not used: one card is enough"
    usable = card.usable
    return f"{card.name} is not used: {usable.how if isinstance(usable, Known) else usable.reason}"


def _title(card: Accelerator) -> str:
    size = f" ({format_bytes(card.memory_total.value)})" if isinstance(card.memory_total, Known) else ""
    return f"{card.name}{size}"


def _screens(host: Host) -> tuple[str, ...]:
    """Displays that are no accelerators at all. One that no table knows is said to be there, and no more."""
    known = {card.pci for card in host.accelerators}
    rest = [device for device in host.pci if device.address not in known]
    return tuple(
        f"{screen(device) or f'display {device.vendor_id}:{device.device_id}'} at {device.address} does not compute"
        for device in rest
    )


def _find(host: Host, wish: str) -> Accelerator:
    """By index, uuid (or its beginning, as CUDA accepts it), or PCI address."""
    for card in host.accelerators:
        if wish == str(card.index) or wish.lower() in {card.uuid.lower(), card.pci.lower()}:
            return card
    begun = [card for card in host.accelerators if len(wish) > 6 and card.uuid.lower().startswith(wish.lower())]
    if len(begun) == 1:
        return begun[0]
    listed = [f"{card.index}  {card.uuid or card.pci or '-'}  {card.name}" for card in host.accelerators]
    several = bool(re.fullmatch(r"[^,]+(,[^,]+)+", wish))
    raise InputError(
        f"--device {wish} is none of the devices of this machine",
        why=(
            "This version starts an engine on one card; a list of them comes later." if several else _here(len(listed))
        ),
        evidence="\n".join(listed[:8]),
        fix=(
            "name one by its number or uuid, or take what selfhost chooses:\nselfhost up MODEL --device auto",
            CPU_INSTEAD,
        ),
        id="CF030",
    )


def _here(count: int) -> str:
    if not count:
        return "There is no accelerator here, only the CPU."
    return f"There {'is 1 accelerator' if count == 1 else f'are {count} accelerators'} here, and the CPU."


def _sentence(text: str) -> str:
    """A name such as vLLM keeps its own spelling."""
    return text if re.match(r"[a-z]+[A-Z]", text) else text[:1].upper() + text[1:]
