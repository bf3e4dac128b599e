"""The output of a container, as its engine keeps it."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from selfhost.runtimes.container_client import CallFailed, Client

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
OVERLAP = timedelta(seconds=1)
"""An engine reads both streams at once: a line may get an earlier time than one that was written down before it."""


@dataclass(slots=True)
class ContainerLog:
    """Asks again for the last second each time, and gives what was not given before. Satisfies runtimes.base.Log."""

    client: Client
    container: str
    _since: str = ""
    _given: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def where(self) -> str:
        return f"{self.client.kind} logs {self.container}"

    @property
    def exists(self) -> bool:
        try:
            return self.client.container(self.container) is not None
        except CallFailed:
            return False

    def more(self) -> str:
        try:
            lines = self.client.logs(self.container, since=self._since) or []
        except CallFailed:  # what is said meanwhile comes with the next answer
            return ""
        known = Counter(self._given)
        fresh = []
        for line in lines:
            if known[line]:
                known[line] -= 1
            else:
                fresh.append(line)
        if fresh:
            self._since = _before(max(at for at, _ in lines))
            self._given = Counter(line for line in lines if line[0] >= self._since)
        return "".join(text for _, text in fresh)

    def last(self, lines: int | None) -> str:
        try:
            return "".join(text for _, text in self.client.logs(self.container, tail=lines) or ())
        except CallFailed as failed:
            return f"({self.where} gave no answer: {failed.text})\n"


def _before(at: str) -> str:
    """In the form that compares as text with the engine's own times."""
    moment = datetime.fromisoformat(at).astimezone(UTC) - OVERLAP
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def timed(text: str) -> list[tuple[str, str]]:
    """Lines that begin with a time and a space, as pairs; times in UTC, so that they compare as text.

    Only a newline ends a line: a progress bar returns its carriage within one, and the engine times it once.
    """
    found: list[tuple[str, str]] = []
    for line in _LINE.findall(text):
        at, space, said = line.partition(" ")
        if space and _TIME.match(at):
            found.append((utc(at), said))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def utc(at: str) -> str:
    """`2026-01-02T03:04:05.123456789+01:00` → the same moment with nine digits and `Z`."""
    try:
        moment = datetime.fromisoformat(at).astimezone(UTC)
    except ValueError:
        return at
    fraction = at.partition(".")[2]
    digits = ""
    for letter in fraction:
        if not letter.isdigit():
            break
        digits += letter
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{digits[:9]:0<9}Z"
