"""Which machine a fix belongs on, by the layers around this process. No rule of its own."""

from collections.abc import Iterator

from selfhost.hosts.layers import CONTAINERS
from selfhost.shapes.finding import RunOn
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.surroundings import DriverStack, Surroundings

_NO_RULES = Surroundings()


def around(host: Host) -> Surroundings:
    """Nothing known where nobody looked wide: every rule over it is silent then."""
    return host.surroundings or _NO_RULES


def layers(host: Host) -> tuple[str, ...]:
    return tuple(layer.label for layer in host.nesting)


def machine(host: Host) -> RunOn:
    """Where drivers, device nodes and kernel settings live."""
    if "pod" in layers(host):
        return RunOn.CLUSTER_ADMIN
    return RunOn.CONTAINER_HOST if in_container(host) else RunOn.HERE


def in_container(host: Host) -> bool:
    return any(label in CONTAINERS or label == "pod" for label in layers(host))


def of(host: Host, vendor: Vendor) -> tuple[Accelerator, ...]:
    return tuple(card for card in host.accelerators if card.vendor is vendor)


def usable(host: Host) -> Iterator[Accelerator]:
    return (card for card in host.accelerators if isinstance(card.usable, Known) and card.usable.value)


def stack(host: Host, vendor: Vendor) -> DriverStack | None:
    return next((one for one in around(host).drivers if one.vendor is vendor), None)
