"""What became of the cards of a container that runs: each is there, lost by a known cause, or unknown. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from selfhost.doctor.granted import same_card
from selfhost.hosts.placement import BACKENDS, stable_id
from selfhost.runtimes.base import EngineState, Seen
from selfhost.shapes.host import Accelerator, Host, Known
from selfhost.shapes.plan import Plan


class Fate(StrEnum):
    THERE = "there"
    REFUSED = "lost: refused inside"
    OFF_THE_BUS = "lost: off the bus"
    DRIVER = "lost: the driver changed under it"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One planned card. `said` is what shows its fate: what opening it said, what the driver's tool answered."""

    id: str
    """As in Plan.device."""
    name: str
    fate: Fate
    said: str = ""
    pci: str = ""

    @property
    def lost(self) -> bool:
        return self.fate not in (Fate.THERE, Fate.UNKNOWN)

    def to_json(self) -> dict[str, str]:
        return {"card": self.id, "name": self.name, "fate": self.fate.value, "said": self.said}


_NOT_RUNNING = "the container does not run, so nobody can look into it"
_OFF = re.compile(
    r"cannot reach this card|GPU is lost|fallen off the bus|GPU requires re\w+|Reset Required", re.IGNORECASE
)
_FALLEN = re.compile(r"NVRM:.*(?:Xid \([^)]*\): 79\b|fallen off the bus).*")
"""https://docs.nvidia.com/deploy/xid-errors/: 79 is a GPU that has fallen off the bus."""


def planned(plan: Plan) -> tuple[str, ...]:
    """Ids of the cards that the container was granted; none on the processor."""
    return () if plan.device == "cpu" or plan.container is None else tuple(plan.device.split(","))


def judge(plan: Plan, outside: Host, inside: Host | str, seen: Seen) -> tuple[Card, ...]:
    """`outside` is the machine, `inside` the container, or the reason why nobody could look into it."""
    if not seen.alive and seen.state is not EngineState.UNKNOWN:
        inside = _NOT_RUNNING
    return tuple(_card(one, plan, outside, inside) for one in planned(plan))


def _card(id: str, plan: Plan, outside: Host, inside: Host | str) -> Card:
    card = _find(id, outside)
    if card is None:
        return _missing(id, plan, outside)
    found = Card(id=id, name=card.name, fate=Fate.UNKNOWN, pci=card.pci)
    own = None if isinstance(inside, str) else _inside(card, outside, inside)
    if own is not None and _is_usable(own):
        return replace(found, fate=Fate.THERE)
    if (cause := _cause(card)) is not None:
        return replace(found, fate=cause, said=_reason(card))
    if own is not None:
        return _by_itself(found, own, answers=_is_usable(card))
    if not _is_usable(card):
        return replace(found, said=f"the machine itself cannot use it: {_reason(card)}")
    return replace(found, said=inside if isinstance(inside, str) else "the container does not show it")


def _by_itself(found: Card, own: Accelerator, *, answers: bool) -> Card:
    """Of a card that the container shows and does not use. `answers`: the machine itself uses it."""
    refused = next((node for node in own.nodes if node.opened == "EPERM"), None)
    if refused is not None:
        return replace(found, fate=Fate.REFUSED, said=f"{refused.path}: EPERM")
    if (cause := _cause(own)) is not None:
        return replace(found, fate=cause, said=f"inside: {_reason(own)}")
    if answers and isinstance(own.openable, Known) and own.openable.value and "not installed" in _reason(own):
        return replace(found, fate=Fate.THERE, said="it opens inside, and answers on the machine")
    return replace(found, said=f"inside: {_reason(own)}")


def _missing(id: str, plan: Plan, outside: Host) -> Card:
    """A card that the machine lists no more. One that lost its answer lost its uuid too."""
    found = Card(id=id, name=plan.device_name, fate=Fate.UNKNOWN)
    if id.startswith("MIG-"):
        return replace(found, said="the machine lists no such MIG instance; instances are gone after a restart of it")
    nameless = [
        card for card in outside.accelerators if not card.uuid and BACKENDS.get(card.vendor) == plan.build.backend
    ]
    silent = next((card for card in nameless if _cause(card) is not None), None)
    if silent is not None:
        fate = _cause(silent) or Fate.UNKNOWN
        return replace(found, name=silent.name, fate=fate, said=_reason(silent), pci=silent.pci)
    if nameless:
        return replace(found, said=f"the machine names no card by this id: {_reason(nameless[0])}")
    return replace(found, fate=Fate.OFF_THE_BUS, said="the machine lists no such card any more")


def _cause(card: Accelerator) -> Fate | None:
    reason = _reason(card)
    if "mismatch" in reason:
        return Fate.DRIVER
    return Fate.OFF_THE_BUS if _OFF.search(reason) else None


def _find(id: str, host: Host) -> Accelerator | None:
    """By its stable id; the card that was cut for one of its instances."""
    return next(
        (c for c in host.accelerators if stable_id(c) == id or id in (c.pci, *(part.uuid for part in c.partitions))),
        None,
    )


def _inside(card: Accelerator, outside: Host, inside: Host) -> Accelerator | None:
    """The same card as the container shows it. Without ids the only one of its vendor on both sides is meant."""
    same = same_card(card, inside.accelerators)
    if same is not None:
        return same
    theirs = [one for one in inside.accelerators if one.vendor is card.vendor]
    alone = len(theirs) == 1 and sum(one.vendor is card.vendor for one in outside.accelerators) == 1
    return theirs[0] if alone and not (theirs[0].uuid and card.uuid) else None


def _is_usable(card: Accelerator) -> bool:
    return isinstance(card.usable, Known) and card.usable.value


def _reason(card: Accelerator) -> str:
    return card.usable.how if isinstance(card.usable, Known) else card.usable.reason


def with_kernel_log(cards: Sequence[Card], log: str) -> tuple[Card, ...]:
    """What the kernel wrote when a card fell off the bus, put to the card that it names (`PCI:0000:02:00`)."""
    fallen = [match[0].strip() for match in _FALLEN.finditer(log)]
    return tuple(_with(card, fallen) if card.fate is Fate.OFF_THE_BUS and card.pci else card for card in cards)


def _with(card: Card, fallen: Sequence[str]) -> Card:
    own = [line for line in fallen if card.pci.rpartition(".")[0] in line]
    return replace(card, said=f"{card.said}\n{own[-1]}") if own else card
