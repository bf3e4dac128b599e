"""What the host shows of the container engine that files are for."""

from selfhost.core.versions import numbers
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.surroundings import Engine, Toolkit


def engine_seen(host: Host, kind: str) -> Engine | None:
    """The one of this kind that answers; None where nobody looked or none is there."""
    engines = host.surroundings.engines if host.surroundings is not None else ()
    return next((engine for engine in engines if engine.kind == kind and _answers(engine)), None)


def _answers(engine: Engine) -> bool:
    return isinstance(engine.answers, Known) and engine.answers.value


def is_rootless(host: Host, kind: str) -> bool:
    """As the engine says; a podman that was not seen is that of whoever starts it, so rootless unless it is root."""
    engine = engine_seen(host, kind)
    if engine is not None and isinstance(engine.rootless, Known):
        return engine.rootless.value
    uid = host.surroundings.uid if host.surroundings is not None else None
    return kind == "podman" and not (isinstance(uid, Known) and uid.value == 0)


def at_least(engine: Engine, *version: int) -> bool:
    """Also of a version that nobody knows: then nothing speaks against it."""
    return not numbers(engine.version) or numbers(engine.version) >= version


def nvidia_toolkit(host: Host) -> Toolkit | None:
    toolkits = host.surroundings.toolkits if host.surroundings is not None else ()
    return next((toolkit for toolkit in toolkits if toolkit.vendor is Vendor.NVIDIA), None)


def is_wsl(host: Host) -> bool:
    return any(layer.label == "wsl2" for layer in host.nesting)


def is_tegra(cards: tuple[Accelerator, ...]) -> bool:
    """A Jetson's card is on no PCI bus."""
    return any(card.vendor is Vendor.NVIDIA and card.integrated and not card.pci for card in cards)


def enforces_selinux(host: Host, engine: Engine | None, kind: str) -> bool:
    """Podman labels containers wherever SELinux is on; Docker only when its daemon was told to."""
    if host.surroundings is None or host.surroundings.selinux != "enforcing":
        return False
    return kind == "podman" or (engine is not None and any("selinux" in option for option in engine.security))
