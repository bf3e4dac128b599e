"""Intel's tools together: xpu-smi for the cards, sycl-ls and clinfo for what compute sees."""

from dataclasses import dataclass, replace

from selfhost.core.system import Completed, System
from selfhost.hosts import xpu_smi
from selfhost.hosts.recorded_tools import answers, is_asked
from selfhost.hosts.tool_failure import failure
from selfhost.hosts.xpu_smi import XpuReading

PROGRAMS = ("xpu-smi", "xpumcli", "sycl-ls", "clinfo", "zello_world", "ze_info")
_QUESTIONS = (("xpu-smi", "discovery", "-j"), ("sycl-ls",))


@dataclass(frozen=True, slots=True)
class Answer:
    cards: tuple[XpuReading, ...] = ()
    runtime: tuple[XpuReading, ...] = ()
    """What Level Zero or OpenCL lists: names without addresses."""
    failure: str = ""


def is_recorded(system: System) -> bool:
    return is_asked(system, PROGRAMS)


def ask(system: System) -> Answer:
    done = answers(system, PROGRAMS, _QUESTIONS)
    cards: dict[int | None, XpuReading] = {}
    for one in done:
        for card in xpu_smi.parse(one.stdout):
            known = cards.get(card.index)
            cards[card.index] = joined(known, card) if known else card
    bare = [card for card in cards.values() if card.total is None and card.index is not None]
    for card in _in_full(system, bare):
        cards[card.index] = joined(cards[card.index], card) if card.index in cards else card
    return Answer(
        cards=tuple(cards.values()),
        runtime=next((found for one in done if (found := _runtime(one))), ()),
        failure=failure("intel", done),
    )


def _in_full(system: System, bare: list[XpuReading]) -> list[XpuReading]:
    """The list has no memory: each card is asked about by the tool's own number."""
    questions = tuple(("xpu-smi", "discovery", "-d", str(card.index), "-j") for card in bare)
    if not questions:
        return []
    done = answers(system, ("xpu-smi",), questions)
    return [card for one in done for card in xpu_smi.parse(one.stdout)]


def _runtime(done: Completed) -> tuple[XpuReading, ...]:
    return xpu_smi.parse_sycl(done.stdout) or xpu_smi.parse_clinfo(done.stdout)


def joined(first: XpuReading, second: XpuReading) -> XpuReading:
    return replace(
        first,
        pci=first.pci or second.pci,
        device_id=first.device_id or second.device_id,
        name=first.name or second.name,
        uuid=first.uuid or second.uuid,
        total=second.total if first.total is None else first.total,
        free=second.free if first.free is None else first.free,
        tiles=first.tiles or second.tiles,
        driver=first.driver or second.driver,
    )
