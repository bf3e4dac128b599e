"""Compute partitions: which nodes are parts of one card, and the mode that cut it."""

import re
from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts.glance import glance, names
from selfhost.hosts.kfd import KfdNode

# Parts by mode; of a card with fewer dies CPX gives fewer (MI300A 6, MI308X 4), known by the single die of each part.
_MODES = {2: "DPX", 3: "TPX", 4: "QPX", 8: "CPX"}


def mode(system: System, folder: str, parts: Sequence[KfdNode], *, said: tuple[str, str] = ("", "")) -> tuple[str, str]:
    """Compute and memory mode, each empty when nothing tells it: amdgpu's own files, a tool, the number of parts."""
    compute = _word(glance(system, f"{folder}/current_compute_partition"), r"[SDTQC]PX") or said[0]
    memory = _word(glance(system, f"{folder}/current_memory_partition"), r"NPS\d") or said[1]
    if len(parts) > 1 and compute in ("", "SPX"):
        compute = "CPX" if all(part.xcc == 1 for part in parts) else _MODES.get(len(parts), "")
    return compute, memory


def _word(text: str, pattern: str) -> str:
    return text if re.fullmatch(pattern, text) else ""


def parts_of(address: str, nodes: Sequence[KfdNode], functions: Sequence[str]) -> tuple[KfdNode, ...]:
    """Nodes of the card at `address`: its own, and those of functions that the bus does not have.

    The function digit of a part is its number, so only the first part has the address of the card.
    """
    slot = address.rpartition(".")[0]
    others = set(functions) - {address}
    first = next((one for one in sorted(functions) if one.rpartition(".")[0] == slot), address)
    return tuple(
        node
        for node in nodes
        if node.address == address or (first == address and slot and node.slot == slot and node.address not in others)
    )


def platform_nodes(system: System) -> tuple[str, ...]:
    """Render nodes of extra partitions: platform devices `amdgpu_xcp_3`, on newer kernels `amdgpu_xcp.3`."""
    base = "/sys/devices/platform"
    found = [re.fullmatch(r"amdgpu_xcp[_.](\d{1,4})", name, re.ASCII) for name in names(system, base)]
    places = sorted((int(one[1]), one[0]) for one in found if one)
    renders = (name for _, place in places for name in names(system, f"{base}/{place}/drm"))
    return tuple(name for name in renders if re.fullmatch(r"renderD\d+", name))
