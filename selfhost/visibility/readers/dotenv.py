"""`.env` and env_file as Compose reads them: quotes, comments, `export`, and variables inside values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from selfhost.visibility.readers.compose_interpolate import Filled, interpolate

_BEGIN = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*(?P<equals>[=:])?[ \t]*", re.ASCII)
_RAW = re.compile(r"[ \t]*(?P<name>[^\s=#][^=]*?)(?P<equals>=(?P<value>.*))?[ \t\r]*\Z")
_COMMENT = re.compile(r"\s#.*")
_MOST_LINES: Final = 200
"""Of one value in quotes, such as a certificate."""
_LONGEST: Final = 2**16
"""Letters of a value that others may name."""
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$$"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One variable. `value` is None when only its name stands there: the shell of the run has the value."""

    name: str
    value: Filled | None
    line: int


def entries(text: str, known: Mapping[str, str]) -> Iterator[Entry]:
    """Variables in order. Lines that are none are passed over."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    values = dict(known)
    number = 0
    while number < len(lines):
        line, start = lines[number], number
        number += 1
        begin = _BEGIN.match(line)
        if begin is None or line.lstrip().startswith("#"):
            continue
        if not begin["equals"]:
            if not line[begin.end() :].strip():
                yield Entry(begin["name"], None, start + 1)
            continue
        rest = line[begin.end() :]
        quote = rest[:1] if rest[:1] in ("'", '"') else ""
        if quote and _closing(rest, quote) is None:
            whole = "\n".join((rest, *lines[number : number + _MOST_LINES]))
            end = _closing(whole, quote)
            number += 0 if end is None else whole.count("\n", 0, end)
            rest = rest if end is None else whole
        value = _value(rest, quote, values)
        if not value.unknown and len(value.text) <= _LONGEST:
            values.setdefault(begin["name"], value.text)
        yield Entry(begin["name"], value, start + 1)


def raw_entries(text: str) -> Iterator[Entry]:
    """As `docker run --env-file`: the rest of the line is the value, quotes and all."""
    for number, line in enumerate(text.split("\n"), 1):
        match = _RAW.match(line)
        if match:
            yield Entry(match["name"], Filled(match["value"]) if match["equals"] else None, number)


def _closing(rest: str, quote: str) -> int | None:
    at = 1
    while at < len(rest):
        if rest[at] == "\\" and quote == '"':
            at += 1
        elif rest[at] == quote:
            return at
        at += 1
    return None


def _value(rest: str, quote: str, values: Mapping[str, str]) -> Filled:
    end = _closing(rest, quote) if quote else None
    if end is not None and quote == "'":
        return Filled(rest[1:end])
    plain = rest[1:end] if end is not None else _COMMENT.sub("", f" {rest}").strip()
    if end is not None:
        plain = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), plain, flags=re.DOTALL)
    try:
        return interpolate(plain, values)
    except ValueError:
        return Filled(plain)
