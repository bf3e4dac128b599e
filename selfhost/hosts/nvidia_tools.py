"""The driver's own tools, NVML before nvidia-smi: what both say, as one answer."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from selfhost.core.recorded import Recorded
from selfhost.core.system import System
from selfhost.hosts import nvidia_smi
from selfhost.hosts.nvidia_reading import Answer, Reading, join
from selfhost.hosts.nvml_answer import answer_of
from selfhost.shapes.host import Known

_lock = threading.Lock()
# The last answer by machine: what decides besides the cards is read right after them, and a hung driver, asked twice,
# would cost twice the time-out.
_last: WeakKeyDictionary[System, Answer] = WeakKeyDictionary()


def ask(system: System) -> Answer:
    """Ask anew. nvidia-smi is started only for what NVML left open; never after a call that hung."""
    answer = answer_of(system.nvml())
    if not answer.is_hung and (isinstance(system, Recorded) or not _is_whole(answer.cards)):
        answer = _joined(answer, nvidia_smi.ask(system))
    with _lock:
        _last[system] = answer
    return answer


def last(system: System) -> Answer:
    """What was said when the cards were read; asked now if that was not yet."""
    with _lock:
        known = _last.get(system)
    return ask(system) if known is None else known


def _is_whole(cards: Sequence[Reading]) -> bool:
    """A figure, or NVML's reason why there is none, for everything that nvidia-smi could add."""
    return bool(cards) and all(
        card.uuid and card.name and isinstance(card.arch, Known) and (card.mig != "Enabled" or card.slices is not None)
        for card in cards
    )


def _joined(nvml: Answer, smi: Answer) -> Answer:
    cards = join((*nvml.cards, *smi.cards))
    return replace(
        nvml,
        cards=cards,
        failure="" if cards else _failure(nvml, smi),
        meaning="" if cards else smi.meaning or nvml.meaning,
        remarks=(*nvml.remarks, *smi.remarks),
        driver=nvml.driver or smi.driver,
        driver_how=nvml.driver_how or smi.driver_how,
        library=nvml.library or smi.library,
        cuda=nvml.cuda if isinstance(nvml.cuda, Known) else smi.cuda,
        faults=smi.faults,
        is_hung=smi.is_hung,
        serves_vgpus=smi.serves_vgpus,
    )


def _failure(nvml: Answer, smi: Answer) -> str:
    """nvidia-smi's own words; NVML's where nvidia-smi is not installed and NVML is."""
    if smi.failure == "nvidia-smi is not installed" and nvml.failure and nvml.meaning:
        return nvml.failure if nvml.meaning != "the driver's library is not here" else smi.failure
    return smi.failure or nvml.failure
