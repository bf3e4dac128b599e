"""What the engine builds have compiled code for, and the driver that they need: facts of the engines, not of a card."""

from selfhost.hosts.pci_table import table
from selfhost.shapes.host import Known, Support


def driver_floor() -> str:
    """The oldest branch of the NVIDIA driver on which the current engine build starts."""
    return str(table()["compiled"]["nvidia"]["driver_floor"])


def toolkit() -> str:
    """What the current engine build for NVIDIA is compiled with."""
    return str(table()["compiled"]["nvidia"]["toolkit"])


def support(vendor: str, arch: object, *, architecture: str = "x86_64") -> tuple[Support, str]:
    """Whether the engine build has code for `arch` (a Fact), and the reason in words."""
    compiled = table()["compiled"][vendor]
    if not isinstance(arch, Known):
        return Support.UNKNOWN, "its device id is in no table of this version"
    build = str(compiled["build"])
    if vendor == "nvidia":
        targets = compiled.get(architecture, compiled["x86_64"])
        runs = any(_runs(target, arch.value) for target in targets)
        lowest = f", it starts at {targets[0]}"
    else:
        targets = compiled["archs"]
        runs = arch.value in targets
        lowest = ""
    if runs:
        return Support.SUPPORTED, f"{build} has code for {arch.value}"
    return Support.UNSUPPORTED, f"{build} has no code for {arch.value}{lowest}"


def _runs(target: str, arch: str) -> bool:
    """CUDA binaries run on the same major version and the same or a later minor (CUDA guide, binary compatibility)."""
    built, card = _version(target), _version(arch)
    return built[0] == card[0] and built[1] <= card[1]


def _version(arch: str) -> tuple[int, int]:
    digits = arch.removeprefix("sm_")
    return (int(digits[:-1]), int(digits[-1])) if len(digits) > 1 and digits.isdecimal() else (0, 0)
