"""The placement gate: on which device the engine starts, or why it must not start. Never a silent fallback to the CPU.

A pure function over a Host. *Accelerator* means a device that an engine build has code for; everything else on the bus
is one line of information. What a plan may be made for is wider: hosts/plannable.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from selfhost.hosts.engine_support import driver_floor, toolkit
from selfhost.hosts.obstacle import CPU_INSTEAD, Obstacle, obstacle, version
from selfhost.hosts.pci_table import screen
from selfhost.hosts.wished import wished
from selfhost.shapes.host import Accelerator, Host, Known, Partitioning, Support, Vendor
from selfhost.shapes.units import format_bytes

BACKENDS = {Vendor.NVIDIA: "cuda", Vendor.AMD: "rocm", Vendor.INTEL: "xpu"}
GGUF_INSTEAD = (
    "or compute on this card with llama.cpp and a GGUF of the model:\nhttps://github.com/ggml-org/llama.cpp/releases"
)
_BY_LLAMA_CPP = tuple(BACKENDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the engine runs. `device` is `cpu` or the uuids of the cards; `notes` are for a person, one line each."""

    device: str
    device_name: str
    backend: str
    """`cpu`, `cuda`, `rocm`, `xpu`."""
    accelerators: tuple[Accelerator, ...] = ()
    notes: tuple[str, ...] = ()


def gate(host: Host, asked: str | None) -> Placement:
    """Choose the device for `--device` None, `auto`, `cpu`, or indexes, uuids or PCI addresses of cards.

    Raises EnvironmentMissing when a supported accelerator is there and cannot be used, InputError for one that is not.
    """
    wish = (asked or "auto").strip()
    if wish.lower() == "cpu":
        return on_cpu(host, asked=True)
    if wish.lower() != "auto":
        cards = wished(host, wish)
        for card in cards:
            _pass(host, card)
        return on_cards(host, cards)
    candidates = [card for card in host.accelerators if is_candidate(card)]
    ready = [card for card in candidates if _is_startable(card)]
    if ready:
        card = max(ready, key=free_bytes)
        _pass(host, card)
        return on_cards(host, (card,))
    if candidates:
        raise in_the_way(host, candidates)
    return on_cpu(host, asked=False)


def in_the_way(host: Host, candidates: Sequence[Accelerator]) -> Obstacle:
    """Why none of the cards that an engine has code for can be used."""
    first = min(candidates, key=lambda card: card.vendor is not Vendor.NVIDIA)
    return obstacle(host, first, others=len(candidates) - 1)


def is_candidate(card: Accelerator) -> bool:
    """Supported, or too new for our table: neither is passed over in silence. One given to a virtual machine is."""
    return card.support is not Support.UNSUPPORTED and card.kernel_driver != "vfio-pci"


def is_usable(card: Accelerator) -> bool:
    return isinstance(card.usable, Known) and card.usable.value


def _is_startable(card: Accelerator) -> bool:
    """This version starts engines on whole NVIDIA cards."""
    return is_usable(card) and card.vendor is Vendor.NVIDIA and card.partitioning is not Partitioning.MIG


def free_bytes(card: Accelerator) -> tuple[int, int]:
    """Largest free memory first; among equals the first in order."""
    return (card.memory_free.value if isinstance(card.memory_free, Known) else 0, -card.index)


def _pass(host: Host, card: Accelerator) -> None:
    refused = refusal(host, card)
    if refused is not None:
        raise refused


def refusal(host: Host, card: Accelerator) -> Obstacle | None:
    """What the gate would say of this very card; None for one that an engine is started on."""
    if card.support is Support.UNSUPPORTED:
        return no_code(card)
    if not _is_startable(card):
        return obstacle(host, card)
    return old_driver(host)


def no_code(card: Accelerator) -> Obstacle:
    """Of a card that no engine build computes on. llama.cpp does, with CUDA back to Maxwell, with HIP or Vulkan."""
    return Obstacle(
        f"no engine build can use {card.name}",
        short=f"not for engines: {card.support_reason}",
        why=f"{_sentence(card.support_reason)}.",
        fix=(CPU_INSTEAD, *((GGUF_INSTEAD,) if card.vendor in _BY_LLAMA_CPP else ())),
        id="HX007",
    )


def on_cards(host: Host, cards: Sequence[Accelerator]) -> Placement:
    """Of cards that were let through: several are equal and compute as one."""
    first = cards[0]
    shared = (
        (f"{first.name} computes in the machine's memory; what it takes is taken from there",) if first.unified else ()
    )
    unsure = (f"{first.name}: {first.support_reason}",) if first.support is Support.UNKNOWN else ()
    taken = {card.index for card in cards}
    rest = _lines([other for other in host.accelerators if other.index not in taken])
    return Placement(
        device=",".join(stable_id(card) for card in cards),
        device_name=together(cards),
        backend=BACKENDS[first.vendor],
        accelerators=tuple(cards),
        notes=(*unsure, *shared, *rest, *_screens(host)),
    )


def together(cards: Sequence[Accelerator]) -> str:
    """`2 × NVIDIA GeForce RTX 3090`, or the names of cards that differ."""
    names = list(dict.fromkeys(card.name for card in cards))
    return f"{len(cards)} × {names[0]}" if len(names) == 1 and len(cards) > 1 else " + ".join(names)


def stable_id(card: Accelerator) -> str:
    return card.uuid or card.pci or str(card.index)


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


def on_cpu(host: Host, *, asked: bool) -> Placement:
    """`asked`: somebody wants the CPU although there may be a card, which is then said to be left unused."""
    unused = _left_unused(host) if asked else ()
    told = _lines([card for card in host.accelerators if not (unused and is_candidate(card))])
    return Placement(
        device="cpu",
        device_name=host.cpu.model,
        backend="cpu",
        notes=(*unused, *told, *_screens(host)),
    )


def _left_unused(host: Host) -> tuple[str, ...]:
    return tuple(f"{_title(card)} is left unused: --device cpu" for card in host.accelerators if is_candidate(card))


def _lines(cards: Sequence[Accelerator]) -> tuple[str, ...]:
    """One line for each card; cards of one kind that are not granted here share one."""
    found: dict[str, int] = {}
    for card in cards:
        line = f"{card.name} is on the bus, not granted here" if _is_withheld(card) else _line(card)
        found[line] = found.get(line, 0) + 1
    return tuple(f"{line} ({count} times)" if count > 1 else line for line, count in found.items())


def _is_withheld(card: Accelerator) -> bool:
    absent = any(node.opened == "ENOENT" for node in card.nodes)
    return absent and is_candidate(card)


def _line(card: Accelerator) -> str:
    """Why this one is not the device, in one line."""
    if card.kernel_driver == "vfio-pci":
        return f"{card.name} is set aside for a virtual machine (vfio-pci)"
    if card.support is Support.UNSUPPORTED:
        return f"{card.name} is not used: {card.support_reason}"
    if is_usable(card):
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


def _sentence(text: str) -> str:
    """A name such as vLLM keeps its own spelling."""
    return text if re.match(r"[a-z]+[A-Z]", text) else text[:1].upper() + text[1:]
