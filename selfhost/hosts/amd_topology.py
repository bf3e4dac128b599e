"""How AMD cards reach each other: XGMI by the hive of the KFD topology, else what `amd-smi topology` prints."""

from collections.abc import Sequence
from itertools import combinations

from selfhost.core.system import System
from selfhost.hosts import amd_tools
from selfhost.shapes.host import Accelerator, Link, Vendor


def read(system: System, cards: Sequence[Accelerator]) -> tuple[Link, ...]:
    """Nothing for one card. Parts of one card are no link."""
    own = [card for card in cards if card.vendor is Vendor.AMD]
    if len(own) < 2:
        return ()
    links = {(a, b): link for a, b, link in _by_tool(system, own)}
    for one, other in combinations(own, 2):
        pair = (min(one.index, other.index), max(one.index, other.index))
        if one.link_group and one.link_group == other.link_group and not _is_one_card(one, other):
            links.setdefault(pair, Link(a=pair[0], b=pair[1], kind="XGMI"))
    return tuple(links[pair] for pair in sorted(links))


def _by_tool(system: System, cards: Sequence[Accelerator]) -> list[tuple[int, int, Link]]:
    ours = {card.tool_index["amd-smi"]: card.index for card in cards if "amd-smi" in card.tool_index}
    if len(ours) < 2:
        return []
    found: list[tuple[int, int, Link]] = []
    for first, second, kind, peer in amd_tools.links(system):
        if first in ours and second in ours:
            a, b = sorted((ours[first], ours[second]))
            found.append((a, b, Link(a=a, b=b, kind=kind, peer_access=peer)))
    return found


def _is_one_card(one: Accelerator, other: Accelerator) -> bool:
    slot = one.pci.rpartition(".")[0]
    return bool(slot) and slot == other.pci.rpartition(".")[0]
