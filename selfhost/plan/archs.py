"""The different kinds of cards among the chosen devices."""

from selfhost.plan.devices import Devices
from selfhost.shapes.host import Known


def archs_of(devices: Devices) -> tuple[str, ...]:
    """`sm_89`, `gfx942`, each once; an empty name for an unknown one. On the CPU `amx` or an empty name."""
    if not devices.cards:
        return (devices.cpu_arch,)
    names = (card.arch.value if isinstance(card.arch, Known) else "" for card in devices.cards)
    return tuple(dict.fromkeys(names))
