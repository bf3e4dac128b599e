"""Which devices: chosen once, by stable id, among those that a plan may be made for."""

from dataclasses import dataclass, replace

from selfhost.hosts.placement import on_cards, stable_id
from selfhost.hosts.plannable import plannable
from selfhost.plan.origin import SELFHOST, by
from selfhost.shapes.host import Accelerator, Fact, Host, Known, Partitioning, Unknown
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The devices to run on. `cards` is empty on the CPU; `device` is `cpu` or stable ids with commas between."""

    cards: tuple[Accelerator, ...]
    backend: str
    """`cpu`, `cuda`, `rocm`, `xpu`."""
    device: str
    name: str
    candidates: tuple[tuple[Accelerator, ...], ...] = ()
    """Groups of equal cards that reach each other, smallest first: what may be taken instead of `cards`."""
    cpu_arch: str = ""
    """On the CPU: `amx` where it has matrix units that engines use."""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(stable_id(card) for card in self.cards)

    def taking(self, cards: tuple[Accelerator, ...], *, host: Host) -> "Devices":
        """The same choice with another of its candidates."""
        placed = on_cards(host, cards)
        return replace(self, cards=cards, device=placed.device, name=placed.device_name)


def choose_devices(*, host: Host, service: Service, count: int | None = None) -> Devices:
    """The device to begin with: one card, or as many as were asked for. Raises what hosts/plannable raises."""
    found = plannable(_without_physical(host, service), service.device, count=count)
    placed = found.placement
    return Devices(
        cards=placed.accelerators,
        backend=placed.backend,
        device=placed.device,
        name=placed.device_name or f"CPU ({host.cpu.architecture})",
        candidates=found.candidates,
        cpu_arch="" if placed.accelerators or "amx_bf16" not in host.cpu.features else "amx",
    )


def _without_physical(host: Host, service: Service) -> Host:
    """Of a card that is cut into virtual functions the physical one is for the machine; who names it gets it."""
    if service.device not in (None, "auto"):
        return host
    cut = {_slot(card) for card in host.accelerators if card.partitioning is Partitioning.SRIOV_VF}
    kept = tuple(
        card
        for card in host.accelerators
        if card.partitioning is Partitioning.SRIOV_VF or not card.pci or _slot(card) not in cut
    )
    return replace(host, accelerators=kept)


def _slot(card: Accelerator) -> str:
    return card.pci.rpartition(".")[0]


def device_decision(devices: Devices, *, host: Host, service: Service) -> Decision:
    who = by(service, "device", service.device)
    taken = {card.index for card in devices.cards}
    others = tuple(card.uuid for card in host.usable_accelerators if card.index not in taken and card.uuid)
    if not devices.cards:
        return _cpu(host, who=who, others=others)
    card = devices.cards[0]
    memory = _memory(card, host)
    why = _why(devices, others) if who == SELFHOST else "asked for"
    size = format_bytes(memory.value) if isinstance(memory, Known) else "an unknown amount"
    return Decision(
        field="devices",
        value=devices.device,
        reason=f"{why}, {size}{' shared with the processor' if card.unified else ''}"
        f"{' each' if len(devices.cards) > 1 else ''}",
        source=memory.how if isinstance(memory, Known) else memory.reason,
        evidence=Evidence.SEEN_HERE,
        by=who,
        alternatives=(*others, "cpu"),
    )


def _memory(card: Accelerator, host: Host) -> Fact[int]:
    """What is free, else the whole; of a card that has no memory of its own the machine's."""
    if isinstance(card.memory_free, Known):
        return card.memory_free
    if isinstance(card.memory_total, Unknown) and card.unified:
        return host.memory.available if isinstance(host.memory.available, Known) else host.memory.total
    return card.memory_total


def _why(devices: Devices, others: tuple[str, ...]) -> str:
    if len(devices.cards) > 1:
        return f"one card is too small, so {len(devices.cards)} equal ones"
    return "largest free memory" if others else "the one usable accelerator"


def _cpu(host: Host, *, who: str, others: tuple[str, ...]) -> Decision:
    cores = host.cpu.cores
    count = f"{cores.value:g}" if isinstance(cores, Known) else f"{host.cpu.cores_online} online"
    unused = [card.name for card in host.accelerators]
    why = f"no usable accelerator ({', '.join(unused)})" if unused else "no accelerator on this machine"
    return Decision(
        field="devices",
        value=f"CPU, {count} cores",
        reason=why if who == SELFHOST else "asked for",
        source=cores.how if isinstance(cores, Known) else cores.reason,
        evidence=Evidence.SEEN_HERE,
        by=who,
        alternatives=others,
    )
