"""How NVIDIA cards reach each other: NVML's links, or the matrices of `nvidia-smi topo -m` and `topo -p2p r`."""

import re
from collections.abc import Iterator, Mapping, Sequence

from selfhost.core.system import System
from selfhost.hosts.nvidia_smi import PROGRAMS, TIMEOUT_S, recorded
from selfhost.hosts.nvidia_tools import last
from selfhost.shapes.host import Accelerator, Link, Vendor

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_KINDS = re.compile(r"NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC")
_PEER = re.compile(r"OK|CNS|GNS|TNS|NS|DR|U")
_MATRIX: tuple[str, ...] = ("topo", "-m")
_P2P: tuple[str, ...] = ("topo", "-p2p", "r")
# The same two questions in other spellings, for machines that were recorded with them.
_SPELLINGS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("topo", "--matrix"), _MATRIX),
    (("topo", "-mp"), _MATRIX),
    (("topo", "-p2p", "rw"), _P2P),
    (("topo", "-p2p", "w"), _P2P),
    (("topo", "-p2p", "n"), ()),
)
Pairs = Mapping[tuple[int, int], str]


def read(system: System, cards: Sequence[Accelerator]) -> tuple[Link, ...]:
    """Links between the cards that nvidia-smi numbers here; nothing for one card, or after a call that hung."""
    own = [card for card in cards if card.vendor is Vendor.NVIDIA and "nvidia-smi" in card.tool_index]
    if len(own) < 2:
        return ()
    answer = last(system)
    if answer.links:
        by_uuid = {card.uuid: card.index for card in own}
        return tuple(
            _link(by_uuid[a], by_uuid[b], kind, peer)
            for a, b, kind, peer in answer.links
            if a in by_uuid and b in by_uuid
        )
    if answer.is_hung:
        return ()
    ways, peers = _asked(system)
    ours = {card.tool_index["nvidia-smi"]: card.index for card in own}
    return tuple(
        _link(ours[a], ours[b], kind, peers.get((a, b), "")) for (a, b), kind in ways.items() if a in ours and b in ours
    )


def _link(a: int, b: int, kind: str, peer: str) -> Link:
    return Link(a=min(a, b), b=max(a, b), kind=kind, peer_access=peer)


def _asked(system: System) -> tuple[Pairs, Pairs]:
    answers: dict[tuple[str, ...], str] = {}
    for program in PROGRAMS:
        for question in (_MATRIX, _P2P):
            done = system.run((program, *question), timeout_s=TIMEOUT_S)
            if done.timed_out:
                return pairs(answers.get(_MATRIX, ""), _KINDS), {}
            if done.stdout and not done.missing:
                answers.setdefault(question, done.stdout)
        if answers:
            break
    for argv in recorded(system):
        question = dict(_SPELLINGS).get(argv[1:], argv[1:])
        if question in (_MATRIX, _P2P) and question not in answers:
            answers[question] = system.run(argv, timeout_s=TIMEOUT_S).stdout
    return pairs(answers.get(_MATRIX, ""), _KINDS), pairs(answers.get(_P2P, ""), _PEER)


def pairs(text: str, allowed: re.Pattern[str]) -> Pairs:
    """Cells by the numbers of row and column. The heading is underlined even in a pipe; network cards are no GPUs.

    A pair of which the two cells differ is left out: that text is damaged.
    """
    found: dict[tuple[int, int], str] = {}
    contradicted: set[tuple[int, int]] = set()
    for row, column, cell in _cells(_ANSI.sub("", text)):
        pair = (min(row, column), max(row, column))
        if row != column and allowed.fullmatch(cell) and found.setdefault(pair, cell) != cell:
            contradicted.add(pair)
    return {pair: kind for pair, kind in found.items() if pair not in contradicted}


def _cells(text: str) -> Iterator[tuple[int, int, str]]:
    """Every cell whose row and column are GPUs, by their numbers."""
    columns: list[str] = []
    lines = text.splitlines()
    for place, line in enumerate(lines):
        cells = line.split()
        if not columns:
            columns = _heading(cells)
            continue
        if place == len(lines) - 1 and not text.endswith("\n") and len(cells) <= len(columns) + 1:
            cells = cells[:-1]  # the text ends in this cell: NV18 may be left of it as NV1
        row = _gpu(cells[0]) if cells else None
        for name, cell in zip(columns, cells[1:], strict=False):
            column = _gpu(name)
            if row is not None and column is not None:
                yield row, column, cell


def _gpu(name: str) -> int | None:
    found = re.fullmatch(r"GPU(\d{1,3})", name, re.ASCII)
    return int(found[1]) if found else None


def _heading(cells: Sequence[str]) -> list[str]:
    """Names of columns up to the first of two words (`CPU Affinity`); empty for any other line."""
    if not cells or _gpu(cells[0]) is None or any(cell == "X" for cell in cells):
        return []
    end = next((place for place, cell in enumerate(cells) if cell == "CPU"), len(cells))
    return list(cells[:end])
