"""The forms of nvidia-smi that are for people: `-q`, `-L`, `--version`, `mig -lgi`, and the banner of the table.

NVIDIA promises nothing about them; they are read where a machine was recorded with them alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from selfhost.hosts.nvidia_reading import (
    NOT_SAID,
    Reading,
    Slice,
    bus_address,
    clique,
    device_id,
    fabric,
    fault_in,
    mebibytes,
    mode,
    number,
    version,
)
from selfhost.shapes.host import Tenant

_PROFILE = r"(?:\d+c\.)?\d+g\.\d+gb(?:\+\S+)?"


@dataclass(slots=True)
class _Entry:
    """A line `Key : value` of `-q`, and the lines that are indented further below it."""

    key: str
    value: str
    indent: int
    below: list["_Entry"] = field(default_factory=list)

    def every(self, key: str) -> Iterator["_Entry"]:
        return (entry for entry in self.below if entry.key == key)

    def say(self, *path: str) -> str:
        """The value at the end of `path`, empty when a part of it is missing."""
        entry: _Entry | None = self
        for key in path:
            entry = next(entry.every(key), None) if entry else None
        return entry.value if entry else ""


def versions(text: str) -> tuple[str, str, str]:
    """Driver, highest CUDA and library, out of a banner, `-q` or `--version`.

    R610 writes `KMD version` and `CUDA UMD version`, and under the old names only that they are deprecated. CUDA may
    be `Not Found` (the driver of a hypervisor) or `ERR!` (libcuda does not answer).
    """
    driver = _first(text, r"KMD version", r"Driver version")
    cuda = _first(text, r"CUDA UMD version", r"CUDA version")
    library = _first(text, r"NVML version")
    return version(driver), version(cuda) or (cuda if cuda in ("Not Found", "ERR!", "N/A") else ""), version(library)


def _first(text: str, *names: str) -> str:
    for name in names:
        for found in re.finditer(rf"(?i)(?<![a-z] ){name}[ \t]*:[ \t]*(\d+(?:\.\d+)+|Not Found|ERR!|N/A)", text):
            return found[1]
    return ""


def from_list(text: str) -> tuple[Reading, ...]:
    """`GPU 0: NVIDIA A10 (UUID: GPU-…)` and, two spaces deeper, its MIG devices."""
    found: list[tuple[Reading, list[Slice]]] = []
    for line in text.splitlines():
        card = re.fullmatch(r"GPU (\d{1,3}): (.*?)\s*\(UUID: (GPU-[0-9a-zA-Z-]+)\)\s*", line, re.ASCII)
        part = re.fullmatch(rf"\s+MIG ({_PROFILE})\s+Device\s+(\d{{1,3}}): \(UUID: (MIG-[^)\s]+)\)\s*", line, re.ASCII)
        if card:
            found.append((Reading(tool="nvidia-smi", index=int(card[1]), name=card[2], uuid=card[3]), []))
        elif part and found:
            found[-1][1].append(Slice(index=int(part[2]), profile=part[1], uuid=part[3]))
    return tuple(_with_slices(card, slices) for card, slices in found)


def _with_slices(card: Reading, slices: list[Slice]) -> Reading:
    said = "Enabled" if slices else ""
    return Reading(tool=card.tool, index=card.index, name=card.name, uuid=card.uuid, mig=said, slices=tuple(slices))


def from_query(text: str) -> tuple[Reading, ...]:
    """Blocks of `-q`. Lines of one card alone, without its heading, are a card without a name."""
    top = _tree(text)
    driver = versions(text)[0]
    headed = [entry for entry in top.below if re.fullmatch(r"GPU [0-9a-fA-F]{4,8}:\S+", entry.key)]
    if headed:
        return tuple(_block(entry, position, driver) for position, entry in enumerate(headed))
    about_a_card = ("Fabric", "GPU Virtualization Mode", "MIG Mode", "FB Memory Usage", "Product Name", "GPU UUID")
    return (_block(top, 0, driver),) if any(top.say(key) or any(top.every(key)) for key in about_a_card) else ()


def _tree(text: str) -> _Entry:
    top = _Entry("", "", -1)
    path = [top]
    for line in text.splitlines():
        found = re.fullmatch(
            r"([ \t]*)(GPU [0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:\S+|[^:]+?)[ \t]*(?::[ \t]*(.*?))?[ \t]*", line
        )
        if not found or not found[2].strip() or line.startswith("="):
            continue
        indent = len(found[1].expandtabs(8))
        while path[-1].indent >= indent:
            path.pop()
        entry = _Entry(found[2].strip(), (found[3] or "").strip(), indent)
        path[-1].below.append(entry)
        path.append(entry)
    return top


def _block(entry: _Entry, position: int, driver: str) -> Reading:
    mig = entry.say("MIG Mode", "Current")
    state, status = entry.say("Fabric", "State"), entry.say("Fabric", "Status")
    total = entry.say("FB Memory Usage", "Total")
    uuid = entry.say("GPU UUID")
    return Reading(
        tool="nvidia-smi",
        index=position,
        name=entry.say("Product Name"),
        uuid=uuid if uuid.startswith("GPU-") else "",
        bus_id=bus_address(entry.key.removeprefix("GPU ")) or bus_address(entry.say("PCI", "Bus Id")),
        device_id=device_id(entry.say("PCI", "Device Id")),
        minor=number(entry.say("Minor Number")),
        memory_total=mebibytes(total) if total else NOT_SAID,
        memory_free=mebibytes(entry.say("FB Memory Usage", "Free")) if total else NOT_SAID,
        memory_used=mebibytes(entry.say("FB Memory Usage", "Used")) if total else NOT_SAID,
        driver=driver,
        mig=mode(mig),
        slices=_slices(entry, mig),
        virtualization=entry.say("GPU Virtualization Mode", "Virtualization Mode"),
        licence=entry.say("vGPU Software Licensed Product", "License Status").partition(" (Expiry")[0],
        fabric=fabric(state, status),
        clique=clique(state, entry.say("Fabric", "ClusterUUID"), entry.say("Fabric", "CliqueId")),
        tenants=_tenants(entry),
        fault=fault_in(entry.say("Product Name"), uuid, total),
    )


def _slices(entry: _Entry, mig: str) -> tuple[Slice, ...] | None:
    found = [
        Slice(
            index=int(part.say("Index")),
            memory=mebibytes(part.say("Shared FB Memory Usage", "Total") or part.say("FB Memory Usage", "Total")),
            instance=f"{part.say('GPU Instance ID')}/{part.say('Compute Instance ID')}",
        )
        for part in entry.every("MIG Device")
        if number(part.say("Index")) is not None
    ]
    return tuple(found) if found or mode(mig) else None


def _tenants(entry: _Entry) -> tuple[Tenant, ...] | None:
    """`Processes` holds `None`, or a block a process that begins with its number."""
    block = next(entry.every("Processes"), None)
    if block is None:
        return None
    found: list[Tenant] = []
    for pid, *rest in _processes(block):
        said = {line.key: line.value for line in rest}
        if number(pid.value) is not None and "C" in said.get("Type", ""):
            used = mebibytes(said.get("Used GPU Memory", ""))
            found.append(Tenant(pid=int(pid.value), name=said.get("Name", ""), memory=used))
    return tuple(found)


def _processes(block: _Entry) -> Iterator[list[_Entry]]:
    """Lines from one `Process ID` to the next, whether they are indented under it or beside it."""
    lines: list[_Entry] = []
    for entry in (deep for line in block.below for deep in (line, *line.below)):
        if entry.key == "Process ID":
            if lines:
                yield lines
            lines = []
        if entry.key == "Process ID" or lines:
            lines.append(entry)
    if lines:
        yield lines


def from_table(text: str) -> tuple[Reading, ...]:
    """Rows of the table that nvidia-smi prints by itself. Names are cut at 27 characters and then end in `...`.

    The row below gives the memory: `576MiB /  12282MiB`, or `Not Supported`.
    """
    found: list[Reading] = []
    lines = text.splitlines()
    for place, line in enumerate(lines):
        row = re.match(
            r"\|\s+(\d{1,3})\s\s?(\S.*?)\s{2,}(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*([0-9A-Fa-f:.]{12,16}|N/A)\s", line
        )
        if not row:
            continue
        below = lines[place + 1] if place + 1 < len(lines) else ""
        used = re.search(r"(\d{1,9})MiB\s*/\s*(\d{1,9})MiB", below, re.ASCII)
        silent = "Not Supported" if "Not Supported" in below else ""
        total = mebibytes(used[2] if used else silent)
        found.append(
            Reading(
                tool="nvidia-smi",
                index=int(row[1]),
                name=row[2].strip(),
                bus_id=bus_address(row[3]),
                memory_total=total if used or silent else NOT_SAID,
                memory_used=mebibytes(used[1]) if used else NOT_SAID,
                driver=versions(text)[0],
                fault=fault_in(line, below),
            )
        )
    return tuple(found)


def from_instances(text: str) -> dict[int, tuple[Slice, ...]]:
    """`mig -lgi` (or `-lci`): slices by the number of their card, without uuid."""
    found: dict[int, list[Slice]] = {}
    for gpu, profile, instance in re.findall(
        rf"(?m)^\|\s+(\d{{1,3}})(?:\s+\d{{1,3}})?\s+MIG\s+({_PROFILE})\s+\d+\s+(\d{{1,3}})\s", text, re.ASCII
    ):
        own = found.setdefault(int(gpu), [])
        own.append(Slice(index=len(own), profile=profile, instance=instance))
    return {gpu: tuple(slices) for gpu, slices in found.items()}
