"""How a container lives, by options of a run line: health, labels, log, limits, its first process and its end."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from selfhost.shapes.workload import Health, Ulimit
from selfhost.visibility.readers.durations import seconds

_LIMIT = re.compile(r"(?P<name>[a-z]+)=(?P<soft>-?\d{1,19}|unlimited)(?::(?P<hard>-?\d{1,19}|unlimited))?\Z")
UNSAID: Final = Health(test=(), interval_s=30, timeout_s=30, retries=3, start_period_s=0)
"""What Docker and Podman take where a check says nothing (docs.docker.com, Dockerfile reference, HEALTHCHECK)."""


@dataclass(slots=True)
class Life:
    """Fields as in Workload."""

    init: bool = False
    read_only: bool = False
    stop_grace_s: float | None = None
    health: Health | None = None
    labels: dict[str, str] = field(default_factory=dict)
    log_driver: str = ""
    log_options: dict[str, str] = field(default_factory=dict)
    ulimits: list[Ulimit] = field(default_factory=list)


def take(life: Life, option: str, value: str) -> str:
    """Take in one option that has a value; the key of its spot, or nothing where it is none of these."""
    taker = _TAKERS.get(option)
    return taker(life, value) if taker is not None else ""


def switch(life: Life, option: str, *, on: bool) -> str:
    """As `take`, for an option that stands alone."""
    if option == "init":
        life.init = on
    elif option == "read-only":
        life.read_only = on
    elif option == "no-healthcheck":
        life.health = None
    else:
        return ""
    return option.replace("-", "_")


def limit(text: str) -> Ulimit | None:
    """`memlock=-1:-1`, `nofile=1024`."""
    match = _LIMIT.match(text)
    if match is None:
        return None
    soft, hard = match["soft"], match["hard"] or match["soft"]
    return Ulimit(name=match["name"], soft=_number(soft), hard=_number(hard))


def check_words(text: str) -> tuple[str, ...]:
    """`--health-cmd`: a list in JSON (podman), or a line; one that needs a shell is that shell's."""
    if text.startswith("["):
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        if isinstance(said, list) and all(isinstance(word, str) for word in said):
            words = tuple(said)
            return words[1:] if words[:1] == ("CMD",) else words
    return line_words(text)


def line_words(text: str) -> tuple[str, ...]:
    """A line that means the same without a shell is its words; any other one is what `sh -c` is handed."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    return tuple(words) if words and shlex.join(words) == text else ("/bin/sh", "-c", text)


def _number(text: str) -> int:
    return -1 if text == "unlimited" else int(text)


def _label(life: Life, text: str) -> str:
    name, _, value = text.partition("=")
    life.labels[name] = value
    return f"labels.{name}"


def _log_driver(life: Life, text: str) -> str:
    life.log_driver = text
    return "log_driver"


def _log_option(life: Life, text: str) -> str:
    name, _, value = text.partition("=")
    life.log_options[name] = value
    return f"log_options.{name}"


def _limit(life: Life, text: str) -> str:
    found = limit(text)
    if found is None:
        return ""
    life.ulimits = [*(one for one in life.ulimits if one.name != found.name), found]
    return f"ulimits.{found.name}"


def _stop(life: Life, text: str) -> str:
    life.stop_grace_s = seconds(text)
    return "stop_grace_s"


def _check(life: Life, text: str) -> str:
    life.health = None if text == "none" else replace(life.health or UNSAID, test=check_words(text))
    return "health"


def _retries(life: Life, text: str) -> str:
    if text.isdecimal() and len(text) < 10:
        life.health = replace(life.health or UNSAID, retries=int(text))
    return "health.retries"


def _time(name: str) -> Callable[[Life, str], str]:
    def take_time(life: Life, text: str) -> str:
        found = seconds(text)
        if found is not None:
            was = life.health or UNSAID
            life.health = Health(
                test=was.test,
                interval_s=found if name == "interval_s" else was.interval_s,
                timeout_s=found if name == "timeout_s" else was.timeout_s,
                retries=was.retries,
                start_period_s=found if name == "start_period_s" else was.start_period_s,
            )
        return f"health.{name}"

    return take_time


_TAKERS: Final[dict[str, Callable[[Life, str], str]]] = {
    "label": _label,
    "log-driver": _log_driver,
    "log-opt": _log_option,
    "ulimit": _limit,
    "stop-timeout": _stop,
    "health-cmd": _check,
    "health-interval": _time("interval_s"),
    "health-timeout": _time("timeout_s"),
    "health-start-period": _time("start_period_s"),
    "health-retries": _retries,
}
OPTIONS: Final = frozenset(_TAKERS)
