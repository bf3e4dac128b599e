"""How a plain process is kept to its devices: without a container nothing but a mask selects."""

from selfhost.hosts.slices import is_slice
from selfhost.plan.devices import Devices
from selfhost.shapes.host import Host


def mask_of(devices: Devices, *, host: Host) -> dict[str, str]:
    """The ordinals of the chosen cards in PCI order; empty where there is nothing to choose.

    Ordinals, because vLLM for long read UUIDs here as numbers (https://github.com/vllm-project/vllm/pull/46132);
    the engine's environment sets CUDA_DEVICE_ORDER=PCI_BUS_ID, which makes them mean what detection saw.
    """
    if devices.backend != "cuda" or not devices.cards or is_slice(devices.cards[0]):
        return {}  # a slice is granted to a container, in which nothing else is visible
    visible = sorted(
        (card for card in host.accelerators if card.vendor is devices.cards[0].vendor), key=lambda c: c.pci
    )
    if len(visible) == len(devices.cards):
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(str(visible.index(card)) for card in devices.cards)}
