"""Which devices a plan may be made for: also those on which this version starts nothing itself, such as AMD and Intel
cards, slices of a card in MIG mode, and cards behind a driver that only an older engine takes. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from selfhost.core.errors import InputError
from selfhost.hosts.obstacle import CPU_INSTEAD, fault
from selfhost.hosts.placement import (
    Placement,
    free_bytes,
    in_the_way,
    is_candidate,
    is_usable,
    no_code,
    on_cards,
    on_cpu,
    together,
)
from selfhost.hosts.slices import is_slice, slices
from selfhost.hosts.wished import wished
from selfhost.shapes.host import Accelerator, Host, Known, Partitioning, Support, Vendor

SIZES = (1, 2, 4, 8)
"""Numbers of cards that heads, experts and blocks of weights divide by."""
_COMBINED = 8
"""Among more cards than these the ones with the most free memory are looked at: combinations grow fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plannable:
    """`placement` is the device or the devices to begin with, `candidates` the groups that may be taken instead.

    Each group holds equal cards that reach each other; the smallest comes first. Empty on the CPU.
    """

    placement: Placement
    candidates: tuple[tuple[Accelerator, ...], ...] = ()


def plannable(host: Host, asked: str | None, *, count: int | None = None) -> Plannable:
    """Of `--device` None, `auto`, `cpu`, or a list of cards; `count` asks for so many equal ones.

    Raises EnvironmentMissing when a card is there that cannot be used, InputError for one that is not there.
    """
    wish = (asked or "auto").strip()
    if wish.lower() == "cpu":
        return Plannable(placement=on_cpu(host, asked=True))
    if wish.lower() != "auto":
        cards = _asked_for(host, wish)
        return Plannable(placement=on_cards(host, cards), candidates=(cards,))
    ready = [part for card in host.accelerators if is_candidate(card) and is_usable(card) for part in _parts(card)]
    if not ready:
        candidates = [card for card in host.accelerators if is_candidate(card)]
        if candidates:
            raise in_the_way(host, candidates)
        return Plannable(placement=on_cpu(host, asked=False))
    found = groups(host, max(ready, key=_rank), ready)
    if count is not None:
        found = tuple(group for group in found if len(group) == count)
        if not found:
            raise _too_few(ready, count)
    return Plannable(placement=on_cards(host, found[0]), candidates=found)


def groups(host: Host, first: Accelerator, ready: Sequence[Accelerator]) -> tuple[tuple[Accelerator, ...], ...]:
    """`first` alone, then with 1, 3 and 7 equal cards: those directly linked with it, then those with room."""
    alike = [card for card in ready if card is not first and _kind(card) == _kind(first)]
    if is_slice(first) or first.unified:
        alike = []  # slices cannot reach each other, and a machine has one memory however many chips share it
    alike = sorted(alike, key=_rank, reverse=True)[: _COMBINED - 1]
    found = []
    for size in SIZES:
        if size <= len(alike) + 1:
            best = max(combinations(alike, size - 1), key=lambda rest: _together(host, (first, *rest)))
            found.append(tuple(sorted((first, *best), key=lambda card: card.index)))
    return tuple(found)


def joined(host: Host, one: Accelerator, other: Accelerator) -> bool:
    """Directly linked: NVLink, NVSwitch or XGMI."""
    if one.link_group and one.link_group == other.link_group:
        return True
    pair = {one.index, other.index}
    return any(link.kind.startswith(("NV", "XGMI")) for link in host.links if {link.a, link.b} == pair)


def _asked_for(host: Host, wish: str) -> tuple[Accelerator, ...]:
    cards = wished(host, wish)
    if len(cards) == 1 and not is_slice(cards[0]):
        cards = tuple(sorted(_parts(cards[0]), key=_rank, reverse=True)[:1])
    for card in cards:
        if card.support is Support.UNSUPPORTED:
            raise no_code(card)
        wrong = fault(host, card)
        if wrong is not None:
            raise in_the_way(host, [card])
    return cards


def _parts(card: Accelerator) -> tuple[Accelerator, ...]:
    """A card in MIG mode computes in its slices and in nothing else."""
    return slices(card) or (card,)


def _kind(card: Accelerator) -> tuple[object, ...]:
    size = card.memory_total.value if isinstance(card.memory_total, Known) else None
    return card.vendor, card.name, card.arch.value if isinstance(card.arch, Known) else "", size


def _rank(card: Accelerator) -> tuple[int, ...]:
    """Whole NVIDIA cards first, as the placement gate has it; then those with the most room, then in order."""
    vendor = {Vendor.NVIDIA: 2, Vendor.AMD: 1}.get(card.vendor, 0)
    total = card.memory_total.value if isinstance(card.memory_total, Known) else 0
    room, order = free_bytes(card)
    return vendor, int(card.partitioning is not Partitioning.MIG), room, total, order


def _together(host: Host, cards: Sequence[Accelerator]) -> tuple[int, int]:
    links = sum(joined(host, one, other) for one, other in combinations(cards, 2))
    return links, min(free_bytes(card)[0] for card in cards)


def _too_few(ready: Sequence[Accelerator], count: int) -> InputError:
    return InputError(
        f"a model is not spread over {count} cards"
        if count not in SIZES
        else f"there are not {count} equal cards here that reach each other",
        why=f"Usable here: {together(ready)}. A model is spread over {', '.join(map(str, SIZES))} equal cards.",
        fix=("leave the number to selfhost", CPU_INSTEAD),
        id="CF037",
    )
