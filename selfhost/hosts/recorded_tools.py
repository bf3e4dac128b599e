"""Which questions to put to a vendor's tool: ours on a machine, on a snapshot those that somebody recorded."""

import threading
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed, System

_TIMEOUT_S = 4.5
_lock = threading.Lock()
# What was said, by machine and question: cards, driver and topology are read one after another from the same answers.
_said: WeakKeyDictionary[System, dict[tuple[str, ...], Completed]] = WeakKeyDictionary()


def is_asked(system: System, programs: Sequence[str]) -> bool:
    """Whether a snapshot holds an answer of one of these programs. Nothing is started to find out."""
    return any(_program(argv) in programs for argv in _recorded(system))


def answers(system: System, programs: Sequence[str], questions: Sequence[tuple[str, ...]]) -> tuple[Completed, ...]:
    """Every answer: all at once, because each of these tools takes its time. None is asked twice."""
    asked = [argv for argv in _recorded(system) if _program(argv) in programs]
    if not isinstance(system, Recorded):
        asked = [argv for argv in questions if argv[0] in programs]
    with _lock:
        known = dict(_said.get(system, {}))
    new = [argv for argv in dict.fromkeys(asked) if argv not in known]
    if new:
        from concurrent.futures import ThreadPoolExecutor  # it brings logging in: only where a tool is asked

        with ThreadPoolExecutor(len(new)) as pool:
            said = pool.map(lambda argv: system.run(argv, timeout_s=_TIMEOUT_S), new)
            known.update(zip(new, said, strict=True))
        with _lock:
            _said[system] = {**_said.get(system, {}), **known}
    return tuple(known[argv] for argv in dict.fromkeys(asked) if not known[argv].missing)


def _recorded(system: System) -> tuple[tuple[str, ...], ...]:
    return tuple(argv for argv in system.argvs if argv) if isinstance(system, Recorded) else ()


def _program(argv: Sequence[str]) -> str:
    """Its name, also when it was recorded by its path or behind sudo."""
    words = [word for word in argv if word not in ("sudo", "-n")]
    return words[0].rpartition("/")[2] if words else ""
