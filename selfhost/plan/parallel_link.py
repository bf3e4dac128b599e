"""How the chosen cards reach each other, as far as it bears on spreading a model over them."""

from dataclasses import dataclass
from enum import StrEnum

from selfhost.plan.devices import Devices
from selfhost.shapes.host import Host, Link

_DIRECT = ("NV", "XGMI")
_SWITCH = ("PIX", "PXB")
"""Behind one PCIe switch; others (PHB, NODE, SYS) cross a processor."""


class Join(StrEnum):
    """The worst way between two of the cards."""

    DIRECT = "direct"
    SWITCH = "switch"
    SLOW = "slow"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    kind: Join
    words: str


def join_of(devices: Devices, host: Host | None) -> Joined:
    """By the links that detection saw between every pair."""
    indexes = sorted(card.index for card in devices.cards)
    pairs = [(a, b) for place, a in enumerate(indexes) for b in indexes[place + 1 :]]
    links = [_between(host, a, b) for a, b in pairs]
    groups = {card.link_group for card in devices.cards}
    if len(groups) == 1 and "" not in groups:
        return Joined(kind=Join.DIRECT, words="the cards are linked directly")
    known = [link for link in links if link is not None]
    if not pairs or len(known) < len(pairs):
        return Joined(kind=Join.UNKNOWN, words="how the cards are joined is unknown, and so is what that costs")
    slow = next((link for link in known if _is_slow(link)), None)
    if slow is not None:
        return Joined(kind=Join.SLOW, words=f"across PCIe ({_named(slow)}): what that costs is unknown until measured")
    if all(link.kind.startswith(_DIRECT) for link in known):
        return Joined(kind=Join.DIRECT, words=f"the cards are linked directly ({known[0].kind})")
    return Joined(kind=Join.SWITCH, words="the cards share a PCIe switch: what that costs is unknown until measured")


def _between(host: Host | None, a: int, b: int) -> Link | None:
    if host is None:
        return None
    return next((link for link in host.links if {link.a, link.b} == {a, b}), None)


def _is_slow(link: Link) -> bool:
    if link.kind.startswith(_DIRECT):
        return False
    return not link.kind.startswith(_SWITCH) or link.peer_access not in ("", "OK")


def _named(link: Link) -> str:
    return link.kind if link.peer_access in ("", "OK") else f"{link.kind}, no peer access: {link.peer_access}"
