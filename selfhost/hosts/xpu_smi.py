"""xpu-smi discovery, sycl-ls and clinfo: what Intel's tools say about each card. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from selfhost.hosts.amd_reading import hexadecimal, json_in, lowered, pci_address, whole, word

PROGRAM = "xpu-smi"


@dataclass(frozen=True, slots=True, kw_only=True)
class XpuReading:
    """One card. Empty, 0 or None is what the tool left out. Bytes."""

    tool: str
    index: int | None = None
    pci: str = ""
    device_id: str = ""
    name: str = ""
    uuid: str = ""
    total: int | None = None
    free: int | None = None
    tiles: int = 0
    driver: str = ""
    level_zero: int | None = None
    """Its number for Level Zero, only where a tool says it."""


def parse(text: str) -> tuple[XpuReading, ...]:
    """`discovery -j` in every wrapper, or one card of `discovery -d N -j`. Figures are texts in some releases."""
    return tuple(_card(row) for row in _rows(lowered(json_in(text)))) or tuple(_card(row) for row in _table(text))


_LINE = re.compile(r"\|\s*(\d{0,3})\s*\|\s*([A-Z][\w ]*?): *(.*?)\s*\|")


def _table(text: str) -> Iterator[Mapping[str, Any]]:
    """The table for people: a number begins a card, and each line is `Key: value`."""
    row: dict[str, str] = {}
    for line in text.splitlines():
        shape = _LINE.match(line.strip())
        if not shape:
            continue
        if shape[1]:
            if row:
                yield row
            row = {"device_id": shape[1]}
        key = shape[2].lower().replace(" ", "_")
        if row:
            row[{"soc_uuid": "uuid"}.get(key, key)] = shape[3]
    if row:
        yield row


def _rows(tree: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(tree, list):
        yield from (row for row in tree if isinstance(row, Mapping) and whole(row.get("device_id")) is not None)
    elif isinstance(tree, Mapping):
        lists = [tree[name] for name in ("device_list", "devices") if isinstance(tree.get(name), list)]
        for inner in lists or [[tree]]:
            yield from _rows(inner)


def _card(row: Mapping[str, Any]) -> XpuReading:
    name = word(row.get("device_name"))
    bracket = re.search(r"\[0x([0-9a-fA-F]{4})\]", name)
    total = whole(row.get("memory_physical_size_byte"))
    return XpuReading(
        tool=PROGRAM,
        index=whole(row.get("device_id")),
        pci=pci_address(row.get("pci_bdf_address")),
        device_id=hexadecimal(row.get("pci_device_id")) or (bracket[1].lower() if bracket else ""),
        name=name,
        uuid=word(row.get("uuid")),
        total=total,
        free=whole(row.get("memory_free_size_byte")) if total is not None else None,
        tiles=whole(row.get("number_of_tiles")) or 0,
        driver=word(row.get("driver_version")) or word(row.get("kernel_version")) if "driver_version" in row else "",
    )


_NEW = re.compile(r"^\[(level_zero|opencl):gpu\]\[(?:level_zero|opencl):(\d{1,3})\]\s*(.*)$")
_OLD = re.compile(r"^\[(?:ext_oneapi_)?(level_zero|opencl):gpu:(\d{1,3})\]\s*(.*)$")


def parse_sycl(text: str) -> tuple[XpuReading, ...]:
    """GPUs only, each once: OpenCL lists those of Level Zero again, and processors beside them."""
    found: dict[str, list[XpuReading]] = {"level_zero": [], "opencl": []}
    for line in text.splitlines():
        entry = _NEW.match(line.strip()) or _OLD.match(line.strip())
        if not entry or "NVIDIA" in entry[3]:
            continue
        parts = [part.strip() for part in entry[3].split(",") if part.strip()]
        named = re.match(r"(.*?)(?:\s+(?:OpenCL \d|\d+\.\d+(?:\.\d+)?(?:\s|$))|\s*\[|$)", parts[-1] if parts else "")
        version = re.search(r"\[([\d.+]+)\]\s*$", entry[3])
        found[entry[1]].append(
            XpuReading(
                tool="sycl-ls",
                name=named[1] if named else "",
                driver=version[1] if version else "",
                level_zero=int(entry[2]) if entry[1] == "level_zero" else None,
            )
        )
    return tuple(found["level_zero"] or found["opencl"])


def parse_clinfo(text: str) -> tuple[XpuReading, ...]:
    """Devices of type GPU with Intel's vendor id, in clinfo's long form."""
    found: list[XpuReading] = []
    for block in re.split(r"(?m)^\s*Device Name(?=\s)", text)[1:]:
        lines = dict(
            re.findall(r"(?m)^\s*(Device [\w ()]+?|Global memory size|Driver Version)\s{2,}(\S.*?)\s*$", block)
        )
        name = block.partition("\n")[0].strip()
        if lines.get("Device Type", "") != "GPU" or "Intel" not in name + lines.get("Device Vendor", ""):
            continue
        size = re.match(r"(\d{1,18})", lines.get("Global memory size", ""), re.ASCII)
        found.append(
            XpuReading(
                tool="clinfo",
                name=name,
                total=int(size[1]) if size else None,
                driver=lines.get("Driver Version", ""),
            )
        )
    return tuple(found)
