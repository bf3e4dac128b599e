"""Which device: chosen once, by stable id, by the placement gate."""

from dataclasses import dataclass

from selfhost.hosts.placement import gate
from selfhost.plan.origin import SELFHOST, by
from selfhost.shapes.host import Accelerator, Host, Known
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The devices to run on. `cards` is empty on the CPU; `device` is `cpu` or a stable id."""

    cards: tuple[Accelerator, ...]
    backend: str
    device: str
    name: str

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(card.uuid or card.pci or str(card.index) for card in self.cards)


def choose_devices(*, host: Host, service: Service) -> Devices:
    """The device that the placement gate lets through. Raises what the gate raises."""
    placed = gate(host, service.device)
    return Devices(
        cards=placed.accelerators,
        backend=placed.backend,
        device=placed.device,
        name=placed.device_name or f"CPU ({host.cpu.architecture})",
    )


def device_decision(devices: Devices, *, host: Host, service: Service) -> Decision:
    who = by(service, "device", service.device)
    others = tuple(card.uuid for card in host.usable_accelerators if card not in devices.cards and card.uuid)
    if not devices.cards:
        return _cpu(host, who=who, others=others)
    card = devices.cards[0]
    memory = card.memory_free if isinstance(card.memory_free, Known) else card.memory_total
    why = "largest free memory" if others else "the one usable accelerator"
    size = format_bytes(memory.value) if isinstance(memory, Known) else "an unknown amount"
    return Decision(
        field="devices",
        value=devices.device,
        reason=f"{why if who == SELFHOST else 'asked for'}, {size}",
        source=memory.how if isinstance(memory, Known) else memory.reason,
        evidence=Evidence.SEEN_HERE,
        by=who,
        alternatives=(*others, "cpu"),
    )


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
