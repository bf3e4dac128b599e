"""Accelerators by name: total memory as an engine sees it, bandwidth of the data sheet, native number formats."""

import difflib
import re
from dataclasses import dataclass
from functools import cache

from selfhost.core.table import read_table
from selfhost.shapes.host import Accelerator, Fact, Known, Unknown, Vendor
from selfhost.shapes.units import GIB

_SEEN_SHARE = 0.98
"""Of the size that the driver's tool reports, what CUDA gives programs: 0.971 to 0.994 over the rows of cards.toml."""
_SAME = 0.08
"""Two sizes of one card differ by less: tools count what the driver reserves, engines do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One row of cards.toml. `bandwidth` in bytes per second; `memory` is 0 where the firmware decides it."""

    name: str
    match: re.Pattern[str]
    vendor: Vendor
    arch: str
    memory: int
    bandwidth: int
    fp8: bool
    fp4: bool
    unified: bool
    linked: bool
    source: str


@cache
def cards() -> tuple[Card, ...]:
    table = read_table("selfhost.hosts", "cards.toml")
    return tuple(
        Card(
            name=row["name"],
            match=re.compile(row["match"], re.IGNORECASE),
            vendor=Vendor(row["vendor"]),
            arch=row["arch"],
            memory=int(row.get("memory_gib", 0) * GIB),
            bandwidth=int(row["bandwidth"] * 1e9),
            fp8=row.get("fp8", False),
            fp4=row.get("fp4", False),
            unified=row.get("unified", False),
            linked=row.get("linked", False),
            source=row.get("source", table["source"]),
        )
        for row in table["card"]
    )


def named(text: str) -> Card | None:
    """The card that a person means: an exact name first, else the row whose pattern covers most of `text`."""
    wanted = _plain(text)
    exact = next((card for card in cards() if wanted in {_plain(card.name), *_short(card.name)}), None)
    return exact or _best(text, cards())


def nearest(text: str, *, count: int = 4) -> tuple[str, ...]:
    """Names that look like `text`, most alike first."""
    names = {_plain(card.name): card.name for card in cards()}
    return tuple(names[one] for one in difflib.get_close_matches(_plain(text), list(names), n=count, cutoff=0.3))


def of(accelerator: Accelerator) -> Card | None:
    """The row of a card that was found: by its name, or as the one of its architecture and size; None when unsure."""
    arch = accelerator.arch.value if isinstance(accelerator.arch, Known) else ""
    rows = tuple(card for card in cards() if card.arch == arch and _fits(card, accelerator.memory_total))
    found = None if "laptop" in accelerator.name.lower() else _best(accelerator.name, rows)
    if found is None and len({(row.bandwidth, row.memory) for row in rows}) == 1:
        return rows[0]
    return found


def seen_by_engine(accelerator: Accelerator) -> Fact[int]:
    """Total bytes as CUDA or HIP reports them to a program, which an engine's share is taken of."""
    row, total = of(accelerator), accelerator.memory_total
    if isinstance(total, Known) and accelerator.vendor is Vendor.NVIDIA and not accelerator.unified:
        if row is not None and row.memory:
            return Known(min(row.memory, total.value), f"{row.name} in cards.toml, {total.how}")
        return Known(int(total.value * _SEEN_SHARE), f"{_SEEN_SHARE:.0%} of what {total.how} reports")
    if isinstance(total, Unknown) and row is not None and row.memory:
        return Known(row.memory, f"{row.name} in cards.toml; {total.reason}")
    return total


def _fits(card: Card, total: Fact[int]) -> bool:
    if isinstance(total, Unknown) or not card.memory:
        return True
    return abs(card.memory - total.value) <= _SAME * card.memory


def _best(text: str, rows: tuple[Card, ...]) -> Card | None:
    spans = [
        (found.end() - found.start(), -place, card)
        for place, card in enumerate(rows)
        if (found := card.match.search(text))
    ]
    return max(spans, key=lambda span: span[:2])[2] if spans else None


def _plain(text: str) -> str:
    """`NVIDIA GeForce RTX 4090` → `rtx4090`."""
    words = re.sub(r"\b(nvidia|geforce|amd|radeon|intel|instinct|tesla|graphics|gpu)\b", "", text.lower())
    return re.sub(r"[^a-z0-9]+", "", words)


def _short(name: str) -> set[str]:
    """Other ways to write a row's name: without its size or bracket, and each side of a slash."""
    bare = re.sub(r"\(.*?\)", "", name)
    sides = [bare, *bare.split("/"), re.sub(r"\b\d+GB\b", "", bare), re.sub(r"\b(SXM|RTX)\b", "", bare)]
    inside = re.findall(r"\((.*?)\)", name)
    return {_plain(side) for side in [*sides, *inside, *(part for text in inside for part in text.split(","))]}
