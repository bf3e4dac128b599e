"""amd-smi: `list`, `static`, `metric`, `process`, `partition`, `version`, in the shapes of its releases. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from selfhost.hosts.amd_reading import (
    MIB,
    Reading,
    bytes_of,
    hexadecimal,
    indented,
    json_in,
    lowered,
    pci_address,
    rows,
    whole,
    word,
)
from selfhost.shapes.host import Known, Tenant, Unknown

PROGRAM = "amd-smi"


def parse(text: str) -> tuple[Reading, ...]:
    """Every card that any of its outputs names."""
    tree = json_in(text)
    cards = list(rows(lowered(tree))) if tree is not None else indented(text)
    found = tuple(reading for row in cards if (reading := _reading(row)) is not None)
    return found or _table(text)


def _inner(row: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = row.get(name)
        if isinstance(value, Mapping):
            return value
    return {}


def _reading(row: Mapping[str, Any]) -> Reading | None:
    index = whole(row.get("gpu"))
    if index is None:
        return None
    asic, bus, driver = _inner(row, "asic"), _inner(row, "bus"), row.get("driver")
    vram, usage = _inner(row, "vram"), _inner(row, "mem_usage", "memory_usage")
    part = _inner(row, "partition", "current_partition")
    hip = whole(row.get("hip_id"))
    total = bytes_of(vram.get("size", vram.get("vram_size")))
    return Reading(
        tool=PROGRAM,
        index=index,
        pci=pci_address(row.get("bdf") or bus.get("bdf")),
        render=word(row.get("render")),
        kfd_id=whole(row.get("kfd_id")) or 0,
        node=word(row.get("node_id")),
        uuid=word(row.get("uuid")),
        hip_uuid=_hip_uuid(row.get("hip_uuid")),
        name=word(asic.get("market_name")),
        device_id=hexadecimal(asic.get("device_id")),
        arch=arch(asic.get("target_graphics_version")),
        total=total if total is not None else bytes_of(usage.get("total_vram")),
        used=bytes_of(usage.get("used_vram")),
        hip=hip,
        compute=_mode(part.get("compute_partition") or part.get("accelerator_type"), r"[SDTQC]PX"),
        memory_mode=_mode(part.get("memory_partition") or part.get("memory"), r"NPS\d"),
        driver=word(driver.get("version")) if isinstance(driver, Mapping) else word(driver),
        tenants=_tenants(row.get("process_list")),
        indexes={PROGRAM: index} | ({} if hip is None else {"hip": hip}),
    )


def _hip_uuid(text: object) -> str:
    """`GPU-XX` stands for a card without a number of its own: no selector."""
    found = word(text)
    return found if re.fullmatch(r"GPU-[0-9a-f]{8,32}", found) else ""


def arch(text: object) -> str:
    found = re.match(r"gfx[0-9a-f]{3,5}", word(text))
    return found[0] if found else ""


def _mode(text: object, pattern: str) -> str:
    return word(text) if re.fullmatch(pattern, word(text)) else ""


def _tenants(listed: object) -> tuple[Tenant, ...]:
    found: list[Tenant] = []
    for entry in listed if isinstance(listed, list) else ():
        info = entry.get("process_info", entry) if isinstance(entry, Mapping) else None
        pid = whole(info.get("pid")) if isinstance(info, Mapping) else None
        if pid is None or not isinstance(info, Mapping):
            continue
        used = bytes_of(_inner(info, "memory_usage").get("vram_mem", info.get("mem_usage", info.get("mem"))))
        memory = Unknown("amd-smi gives no figure") if used is None else Known(used, "amd-smi process")
        found.append(Tenant(pid=pid, name=word(info.get("name")), memory=memory))
    return tuple(found)


_FIRST = re.compile(r"\|\s*([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+(.*?)\s*\|")
_SECOND = re.compile(r"\|\s*(\d{1,4})\s+(\d{1,4}|N/A)\s+\S+\s+(\S+)\s*\|.*?(\d{1,9})/(\d{1,9}) MB\s*\|")


def _table(text: str) -> tuple[Reading, ...]:
    """The table that amd-smi prints without a subcommand (7.x): two lines a card, its own index and HIP's apart."""
    found: list[Reading] = []
    first: re.Match[str] | None = None
    for line in text.splitlines():
        begins = _FIRST.match(line)
        if begins:
            first = begins
            continue
        second = _SECOND.match(line)
        if first and second:
            hip = whole(second[2])
            mode = re.fullmatch(r"([SDTQC]PX)(?:/(NPS\d))?", second[3])
            found.append(
                Reading(
                    tool=PROGRAM,
                    index=int(second[1]),
                    pci=pci_address(first[1]),
                    name=word(first[2]),
                    used=int(second[4]) * MIB,
                    total=int(second[5]) * MIB,
                    hip=hip,
                    compute=mode[1] if mode else "",
                    memory_mode=(mode[2] or "") if mode else "",
                    indexes={PROGRAM: int(second[1])} | ({} if hip is None else {"hip": hip}),
                )
            )
            first = None
    return tuple(found)


def versions(text: str) -> tuple[str, str]:
    """ROCm's version and that of amdgpu, out of `amd-smi version` in both forms, or of the table's head."""
    tree = lowered(json_in(text))
    entry = next(iter(tree), {}) if isinstance(tree, list) else tree
    if isinstance(entry, Mapping) and ("rocm_version" in entry or "amdgpu_version" in entry):
        return word(entry.get("rocm_version")), word(entry.get("amdgpu_version"))
    rocm = re.search(r"ROCm version:\s*(\d+(?:\.\d+)+)", text)
    driver = re.search(r"amdgpu version:\s*([^|\s]+)", text)
    return (rocm[1] if rocm else ""), (word(driver[1]) if driver else "")


def links(text: str) -> tuple[tuple[int, int, str, str], ...]:
    """Pairs of amd-smi's own numbers, the kind of link and whether peers reach each other. Both shapes."""
    tree = lowered(json_in(text))
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for row in rows(tree):
        own = whole(row.get("gpu"))
        for other, kind, access in _row_links(row):
            if own is not None and other is not None and own != other and kind not in ("", "SELF"):
                found.setdefault((min(own, other), max(own, other)), (kind, access))
    return tuple((a, b, kind, access) for (a, b), (kind, access) in sorted(found.items()))


def _row_links(row: Mapping[str, Any]) -> list[tuple[int | None, str, str]]:
    listed = row.get("links")
    if isinstance(listed, list):
        entries = [entry for entry in listed if isinstance(entry, Mapping)]
        return [
            (
                whole(entry.get("gpu")),
                word(entry.get("link_type")).upper(),
                _peer(entry.get("link_status", entry.get("link_accessibility"))),
            )
            for entry in entries
        ]
    kinds, access = _inner(row, "link_type"), _inner(row, "link_accessibility")
    return [
        (whole(key.removeprefix("gpu_")), word(kind).upper(), _peer(access.get(key))) for key, kind in kinds.items()
    ]


def _peer(text: object) -> str:
    said = word(text).upper()
    return {"ENABLED": "OK", "DISABLED": "disabled"}.get(said, "")
