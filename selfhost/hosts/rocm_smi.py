"""rocm-smi and rocminfo, the older tools: what they add about each card. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from selfhost.hosts.amd_reading import Reading, hexadecimal, json_in, lowered, pci_address, whole, word
from selfhost.hosts.amd_smi import arch
from selfhost.hosts.kfd import address

PROGRAM = "rocm-smi"


def parse(text: str) -> tuple[Reading, ...]:
    """`cardN` objects, every value a text; `system` is no card. Spelling and case differ before and after ROCm 6."""
    tree = lowered(json_in(text))
    if not isinstance(tree, Mapping):
        return ()
    driver = word(tree["system"].get("driver_version")) if isinstance(tree.get("system"), Mapping) else ""
    found = (
        (int(key[4:]), row)
        for key, row in tree.items()
        if re.fullmatch(r"card\d{1,4}", key, re.ASCII) and isinstance(row, Mapping)
    )
    return tuple(_card(index, row, driver) for index, row in found)


def _card(index: int, row: Mapping[str, Any], driver: str) -> Reading:
    names = (word(row.get(key)) for key in ("card_series", "device_name", "card_model"))
    unique = re.fullmatch(r"0x([0-9a-f]{4,16})", word(row.get("unique_id")).lower())
    ids = (hexadecimal(row.get(key)) for key in ("device_id", "gpu_id", "card_model"))
    return Reading(
        tool=PROGRAM,
        index=index,
        pci=pci_address(row.get("pci_bus")),
        kfd_id=whole(row.get("guid")) or 0,
        node=word(row.get("node_id")),
        hip_uuid=f"GPU-{unique[1].rjust(16, '0')}" if unique and int(unique[1], 16) else "",
        name=next((name for name in names if name and not name.startswith("0x")), ""),
        device_id=next((found for found in ids if found), ""),
        arch=arch(row.get("gfx_version")),
        total=whole(row.get("vram_total_memory_(b)")),
        used=whole(row.get("vram_total_used_memory_(b)")),
        compute=_found(r"[SDTQC]PX", row.get("compute_partition")),
        memory_mode=_found(r"NPS\d", row.get("memory_partition")),
        driver=driver,
        indexes={PROGRAM: index},
    )


def _found(pattern: str, text: object) -> str:
    return word(text) if re.fullmatch(pattern, word(text)) else ""


def parse_rocminfo(text: str) -> tuple[Reading, ...]:
    """GPU agents. Its order is that of HSA after ROCR_VISIBLE_DEVICES, so it numbers nothing."""
    found: list[Reading] = []
    for block in re.split(r"(?m)^\s*Agent \d+\s*$", text)[1:]:
        values = _first_values(block)
        if values.get("Device Type", "").upper() != "GPU":
            continue
        chip = re.match(r"(\d{1,6})", values.get("Chip ID", ""), re.ASCII)
        location = whole(values.get("BDFID")) or 0
        uuid = values.get("Uuid", "")
        found.append(
            Reading(
                tool="rocminfo",
                pci=address(location, whole(values.get("Domain")) or 0),
                node=word(values.get("Node")),
                hip_uuid=uuid if re.fullmatch(r"GPU-[0-9a-f]{8,32}", uuid) else "",
                name=word(values.get("Marketing Name")),
                device_id=f"{int(chip[1]) & 0xFFFF:04x}" if chip else "",
                arch=arch(values.get("Name")),
                total=_pool(block),
                is_apu="APU" in values.get("Memory Properties", ""),
            )
        )
    return tuple(found)


def _first_values(block: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in re.findall(r"(?m)^\s*([A-Z][\w .()]*?):[ \t]+(\S.*?)\s*$", block):
        values.setdefault(key, value)
    return values


def _pool(block: str) -> int | None:
    """The first global pool, in KB of 1024 bytes."""
    pool = re.search(r"Segment:\s+GLOBAL[^\n]*\n\s+Size:\s+(\d{1,15})", block, re.ASCII)
    return int(pool[1]) * 1024 if pool else None
