"""One NVIDIA card as one tool knows it, and how several readings become one: by uuid or address, not by index."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from selfhost.shapes.host import Fact, Known, Tenant, Unknown

NOT_SAID = Unknown("nothing that answered says it")
# Why a card of a hypervisor that hands out vGPUs is not usable.
VGPU_HOST = "the driver here is the vGPU manager of a hypervisor, which runs no CUDA: its cards serve virtual machines"
_MIB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One MIG device. `index` counts within its card, and is the one thing that all forms of nvidia-smi agree on."""

    index: int
    profile: str = ""
    uuid: str = ""
    memory: Fact[int] = NOT_SAID
    instance: str = ""
    """`2/0`: GPU instance and compute instance. Compute instances of one GPU instance share its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One card. Memory in bytes; what the tool does not say is empty, None or NOT_SAID."""

    tool: str
    """`NVML` or `nvidia-smi`; only readings of one tool may be joined by their number."""
    index: int | None = None
    name: str = ""
    uuid: str = ""
    bus_id: str = ""
    """In the form of sysfs, `0000:01:00.0`; empty on boards without a bus."""
    device_id: str = ""
    minor: int | None = None
    memory_total: Fact[int] = NOT_SAID
    memory_free: Fact[int] = NOT_SAID
    memory_used: Fact[int] = NOT_SAID
    arch: Fact[str] = NOT_SAID
    driver: str = ""
    mig: str = ""
    """`Enabled`, `Disabled`, or nothing for a card that cannot be cut."""
    slices: tuple[Slice, ...] | None = None
    """None where slices are not listed at all; empty where there is none."""
    virtualization: str = ""
    """`None`, `Pass-Through`, `VGPU`, `Host VGPU`."""
    licence: str = ""
    fabric: str = ""
    clique: str = ""
    tenants: tuple[Tenant, ...] | None = None
    fault: str = ""
    """What was said instead of an answer about this card: `GPU is lost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that the driver's own tools said."""

    cards: tuple[Reading, ...] = ()
    failure: str = ""
    """Why there are no cards."""
    meaning: str = ""
    """The failure in plain words."""
    remarks: tuple[str, ...] = ()
    """What was wrong beside cards that were listed: cut output, an exit code."""
    driver: str = ""
    driver_how: str = ""
    library: str = ""
    """Version of the user-space library, as it gave itself."""
    cuda: Fact[str] = NOT_SAID
    links: tuple[tuple[str, str, str, str], ...] = ()
    """Address or uuid of two cards, how they are linked, peer access."""
    faults: dict[str, str] = field(default_factory=dict)
    """By PCI address: what was said of a card that could not be asked."""
    is_hung: bool = False
    serves_vgpus: bool = False
    """The driver names what it can hand to virtual machines (`vGPU Driver Capability`)."""


def bus_address(text: str) -> str:
    """`00000000:0C:00.0` as sysfs writes it, `0000:0c:00.0`; empty for `N/A`."""
    parts = re.fullmatch(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])", text.strip())
    return f"{int(parts[1] or '0', 16):04x}:{parts[2].lower()}" if parts else ""


def mebibytes(text: str, tool: str = "nvidia-smi") -> Fact[int]:
    """`24564` or `24564 MiB` in bytes; a card that computes in the machine's memory answers `[N/A]`."""
    parts = re.fullmatch(r"(\d{1,9})(?: MiB)?", text.strip(), re.ASCII)
    if parts:
        return Known(int(parts[1]) * _MIB, tool)
    return Unknown(f"{tool} answers {text.strip()[:80] or 'nothing'}")


def architecture_of(capability: str, how: str) -> Fact[str]:
    """Compute capability `8.9` as `sm_89`."""
    parts = re.fullmatch(r"(\d{1,2})\.(\d)", capability.strip(), re.ASCII)
    if parts:
        return Known(f"sm_{parts[1]}{parts[2]}", how)
    return Unknown(f"{how.split(maxsplit=1)[0]} answers {capability.strip()[:40] or 'nothing'} for compute_cap")


def version(text: str) -> str:
    """A driver or CUDA version, empty for `N/A`, `Not Found`, or R610's `Deprecated, see "KMD version" instead`."""
    return text.strip() if re.fullmatch(r"\d+\.\d+(\.\d+)*", text.strip(), re.ASCII) else ""


def device_id(text: str) -> str:
    """`0x20B210DE` is device 20b2 of maker 10de."""
    found = re.fullmatch(r"(?:0x)?([0-9a-fA-F]{4})10[dD][eE]", text.strip())
    return found[1].lower() if found else ""


def fabric(state: str, status: str) -> str:
    """`Completed/Success`; empty for a card without a fabric, which says `N/A`."""
    if not state or "N/A" in state or "Not Supported" in state:
        return ""
    return f"{state}/{status}" if status and "N/A" not in status else state


def clique(state: str, cluster: str, number: str) -> str:
    """Which cards reach each other over the fabric; only a completed one tells."""
    if state != "Completed" or not number.isdecimal():
        return ""
    return f"{cluster if len(cluster) > 8 else 'fabric'}/{number}"


def mode(text: str) -> str:
    """`Enabled` or `Disabled`; empty for a card that cannot be cut."""
    return text if text in ("Enabled", "Disabled") else ""


def number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text.strip(), re.ASCII) else None


def fault_in(*answers: str) -> str:
    """The first answer that says that the card itself does not respond."""
    said = (re.search(r"ERR!|Unknown Error|GPU is lost|GPU requires re\w+|Reset Required", text) for text in answers)
    return next((found[0] for found in said if found), "")


def join(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """One reading a card, in the order in which cards were first named; what came first wins where two differ."""
    found: list[Reading] = []
    for reading in readings:
        place = next((number for number, other in enumerate(found) if _is_same(other, reading)), None)
        if place is None:
            found.append(reading)
        else:
            found[place] = _both(found[place], reading)
    return tuple(found)


def _is_same(one: Reading, other: Reading) -> bool:
    for mine, yours in ((one.uuid, other.uuid), (one.bus_id, other.bus_id)):
        if mine and yours:
            return mine.lower() == yours.lower()
    numbered = one.index is not None and one.index == other.index
    return numbered and one.tool == other.tool


def _both(first: Reading, second: Reading) -> Reading:
    changes: dict[str, object] = {}
    for item in dataclasses.fields(Reading):
        mine, yours = getattr(first, item.name), getattr(second, item.name)
        if item.name == "slices":
            changes["slices"] = _slices(mine, yours)
        elif _is_open(mine) and not _is_open(yours) and (not isinstance(mine, Unknown) or not _is_weaker(mine, yours)):
            changes[item.name] = yours
    if first.name.endswith("...") and second.name and not second.name.endswith("..."):
        changes["name"] = second.name  # the default table cuts names off
    return dataclasses.replace(first, **changes)  # type: ignore[arg-type]


def _is_open(value: object) -> bool:
    return value is None or value == "" or isinstance(value, Unknown)


def _is_weaker(mine: Unknown, yours: object) -> bool:
    """A reason is given up for a value, and `not said` for any reason."""
    return isinstance(yours, Unknown) and mine is not NOT_SAID


def _slices(mine: Sequence[Slice] | None, yours: Sequence[Slice] | None) -> tuple[Slice, ...] | None:
    """`-L` gives profile and uuid, `-q` the memory: joined by the number that both give within the card."""
    if mine is None or yours is None:
        whole = mine if mine is not None else yours
        return None if whole is None else tuple(whole)
    by_index = {part.index: part for part in mine}
    for part in yours:
        own = by_index.get(part.index)
        by_index[part.index] = part if own is None else _one_slice(own, part)
    return tuple(by_index[number] for number in sorted(by_index))


def _one_slice(mine: Slice, yours: Slice) -> Slice:
    return Slice(
        index=mine.index,
        profile=mine.profile or yours.profile,
        uuid=mine.uuid or yours.uuid,
        memory=mine.memory if isinstance(mine.memory, Known) else yours.memory,
        instance=mine.instance or yours.instance,
    )
