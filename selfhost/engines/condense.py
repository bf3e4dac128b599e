"""A log of any size, shortened to what can tell a cause, with the numbers of the lines that stay."""

import json
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

from selfhost.engines.loglines import lines, plain

IGNORED = (
    # Optional models and platforms that are not there, and what Python says about its own future.
    "Ignore import error when loading",
    "platform is not available because",
    "FutureWarning",
    "DeprecationWarning",
    # A warning of every start on a machine with a low limit: it quotes the error that might come one day (vLLM 0.32.0,
    # utils/system_utils.py).
    "and failed to automatically increase with error",
    # Retried, and harmless for a local folder.
    "Error retrieving file list:",
)
"""Parts of lines that look bad in healthy logs."""

_ALARM = (
    *("error", "exception", "fail", "fatal", "abort", "kill", "cannot", "can't", "unable", "invalid", "unsupported"),
    *(
        "unknown",
        "denied",
        "refused",
        "timed out",
        "timeout",
        "time out",
        "memory",
        "insufficient",
        "exceed",
        "require",
    ),
    *("larger", "greater", "less than", "too ", "sig", "traceback", "xid", "illegal", "undefined", "in use", "not "),
    *("no ", "missing", " 401", " 404", " 429", "raise", "unrecognized", "must ", "died", "dead", "hang"),
)
"""Words, in small letters, of which a line that tells a cause has at least one."""

_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_SAME_SHAPE = 3
_EDGE_LINES = 2500
_LONGEST = 8192
_LONGEST_ROUTINE = 512


@dataclass(frozen=True, slots=True)
class Condensed:
    """A log without what repeats: its text, and the number in the whole log of each line that stayed."""

    text: str
    starts: tuple[int, ...]
    numbers: tuple[int, ...]

    def line_at(self, position: int) -> int:
        """Index of the kept line in which `position` of the text lies."""
        return max(0, bisect_right(self.starts, position) - 1)

    def line(self, index: int) -> str:
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[index] : end]


def condense(text: str) -> Condensed:
    """Keep what can tell a cause, so that a log of any size is quick to search.

    At most three lines of one shape (digits aside) stay; of those the first and the last thousands, and between them
    the ones with a word of alarm.
    """
    counts: dict[int, int] = {}
    head: list[tuple[int, str]] = []
    alarms: list[tuple[int, str]] = []
    tail: deque[tuple[int, str]] = deque(maxlen=_EDGE_LINES)
    for number, raw in enumerate(lines(text), start=1):
        line = raw.strip("\0 \t")
        shape = hash(line[:_LONGEST_ROUTINE].translate(_DIGITS))
        seen = counts.get(shape, 0)
        if not line or seen >= _SAME_SHAPE:
            continue
        counts[shape] = seen + 1
        kept = plain(_unwrapped(line[:_LONGEST]))
        if any(part in kept for part in IGNORED):
            continue
        if len(head) < _EDGE_LINES:
            head.append((number, kept))
        elif len(alarms) < _EDGE_LINES and _alarming(kept):
            alarms.append((number, kept))
        else:
            tail.append((number, kept[:_LONGEST_ROUTINE]))
    chosen = sorted([*head, *alarms, *tail])
    starts, position = [], 0
    for _, line in chosen:
        starts.append(position)
        position += len(line) + 1
    return Condensed("\n".join(line for _, line in chosen), tuple(starts), tuple(number for number, _ in chosen))


def _alarming(line: str) -> bool:
    small = line.lower()
    return any(word in small for word in _ALARM)


def _unwrapped(line: str) -> str:
    """The message of a line as Docker's json-file driver stores it."""
    if not line.startswith('{"log":"'):
        return line
    try:
        return str(json.loads(line)["log"]).rstrip("\n")
    except ValueError:
        return line
