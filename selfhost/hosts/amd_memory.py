"""Memory of an AMD card, in bytes: amdgpu's files for a whole card, the KFD banks for a part, a tool's word at last."""

from selfhost.core.system import System
from selfhost.hosts.amd_reading import Reading
from selfhost.hosts.glance import glance, number, pairs
from selfhost.hosts.kfd import KfdNode, used_memory
from selfhost.shapes.host import Fact, Known, Unknown

Figures = tuple[Fact[int], Fact[int], Fact[int]]
"""Total, free and used."""


def memory(
    system: System, folder: str, node: KfdNode | None, reading: Reading | None, *, integrated: bool, parts: int
) -> Figures:
    if parts > 1:
        return _of_part(system, folder, node, reading, parts)
    total = number(glance(system, f"{folder}/mem_info_vram_total")) if folder else None
    if total is None:
        return _of_banks(system, node) or _of_tool(reading, f"{folder}/mem_info_vram_total does not exist")
    if integrated:
        return _of_apu(system, folder, total)
    used = number(glance(system, f"{folder}/mem_info_vram_used"))
    how = "mem_info_vram totals"
    if used is None:
        missing = Unknown(f"{folder}/mem_info_vram_used does not exist")
        return Known(total, how), missing, missing
    return Known(total, how), Known(total - used, "mem_info_vram, total less used"), Known(used, "mem_info_vram_used")


def _of_apu(system: System, folder: str, vram: int) -> Figures:
    """An APU computes in its carve-out and in the machine's memory behind it (GTT), of which there is only so much."""
    gtt = number(glance(system, f"{folder}/mem_info_gtt_total"))
    if gtt is None:
        missing = Unknown(f"{folder}/mem_info_gtt_total does not exist")
        return Known(vram, "mem_info_vram totals"), missing, missing
    meminfo = pairs(glance(system, "/proc/meminfo"), separator=":")
    machine, available = (_kib(meminfo.get(name, "")) for name in ("MemTotal", "MemAvailable"))
    behind = gtt if machine is None else min(gtt, machine)
    how = "mem_info_vram + mem_info_gtt totals" + ("" if behind == gtt else ", no more than MemTotal")
    total = Known(vram + behind, how)
    used = [number(glance(system, f"{folder}/mem_info_{kind}_used")) for kind in ("vram", "gtt")]
    if used[0] is None or used[1] is None:
        missing = Unknown(f"{folder}/mem_info_vram_used or mem_info_gtt_used does not exist")
        return total, missing, missing
    left = behind - used[1] if available is None else min(behind - used[1], available)
    free = max(0, vram - used[0]) + max(0, left)
    return (
        total,
        Known(free, "mem_info_vram + mem_info_gtt, total less used, no more than MemAvailable"),
        Known(used[0] + used[1], "mem_info_vram_used + mem_info_gtt_used"),
    )


def _kib(text: str) -> int | None:
    value = number(text.removesuffix("kB").strip())
    return None if value is None else value * 1024


def _of_part(system: System, folder: str, node: KfdNode | None, reading: Reading | None, parts: int) -> Figures:
    """Amdgpu's files speak of the whole card. Without a bank its even share is what the driver grants a part."""
    whole = number(glance(system, f"{folder}/mem_info_vram_total")) if folder else None
    by_banks = _of_banks(system, node)
    if by_banks:
        return by_banks
    if whole is not None:
        missing = Unknown("the figure in use is that of the whole card")
        return Known(whole // parts, f"mem_info_vram_total, evenly to {parts} partitions"), missing, missing
    return _of_tool(reading, "neither a KFD bank nor amdgpu says it")


def _of_banks(system: System, node: KfdNode | None) -> Figures | None:
    if node is None or not node.memory:
        return None
    total = Known(node.memory, "mem_banks of the KFD node")
    used = used_memory(system, node.entry)
    if used is None:
        missing = Unknown("the kernel does not count what is in use there")
        return total, missing, missing
    how = "used_memory of the KFD node (compute processes)"
    return total, Known(max(0, node.memory - used), f"mem_banks less {how}"), Known(used, how)


def _of_tool(reading: Reading | None, why: str) -> Figures:
    if reading is None or reading.total is None:
        missing = Unknown(why)
        return missing, missing, missing
    total = Known(reading.total, reading.tool)
    if reading.used is None:
        missing = Unknown(f"{reading.tool} gives no figure of what is in use")
        return total, missing, missing
    return total, Known(max(0, reading.total - reading.used), reading.tool), Known(reading.used, reading.tool)
