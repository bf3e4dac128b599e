"""The ways in which one value may be written, brought into one; what is none of them is said in words."""

import json
import re
from typing import Final

from pydantic_core import PydanticCustomError

from selfhost.core.names import is_name
from selfhost.stack.numbers import short

_REASONING = re.compile(r"(?P<mode>budget|effort)\s*[=:]\s*(?P<value>[\w.]+)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]*")
_FLAG = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*")
_SWITCHED: Final = {True: "on", False: "off"}
"""YAML 1.1 reads `on` and `off` as booleans, and programs that write YAML or JSON write these."""


def _wrong(expected: str) -> PydanticCustomError:
    return PydanticCustomError("spelling", "{expected}", {"expected": expected})


def _said(words: str, cure: str, key: str) -> PydanticCustomError:
    """A whole sentence about the entry `key` of a map, where `expected …` would not say it."""
    return PydanticCustomError("said", "{words}", {"words": words, "cure": cure, "key": key})


def count(value: object) -> object:
    """`32k` as 32000; numbers stay what they are."""
    if not isinstance(value, str):
        return value
    number = short(value)
    if number is None:
        raise _wrong("a whole number, or one such as 32k")
    return number


def on_or_off(value: object) -> object:
    return _SWITCHED[value] if isinstance(value, bool) else value


def reasoning(value: object) -> object:
    """`off`, `budget=2048`, `effort=low` as maps."""
    value = on_or_off(value)
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if word in _SWITCHED.values():
        return {"mode": word}
    found = _REASONING.fullmatch(word)
    if found is None:
        raise _wrong("`on`, `off`, `budget=N`, `effort=low|medium|high`, or a map with `mode`")
    return {"mode": found["mode"], "budget_tokens" if found["mode"] == "budget" else "effort": found["value"]}


def precision(value: object) -> object:
    return {"weights": value} if isinstance(value, str) else value


def devices(value: object) -> object:
    """`0`, `0,1`, `cpu`, `GPU-…` or a list of them as a list of words."""
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    words = []
    for one in given:
        word = str(one) if isinstance(one, int) and not isinstance(one, bool) else one
        if not isinstance(word, str) or not _DEVICE.fullmatch(word.strip()):
            raise _wrong("`cpu`, `auto`, or numbers, uuids or PCI addresses of cards")
        words.append(word.strip())
    alone = [word for word in words if word in ("cpu", "auto", "all")]
    if not words or "all" in alone or (alone and len(words) > 1):
        raise _wrong("`cpu` alone, `auto` alone, or each card by its number, uuid or PCI address")
    if len({word.lower() for word in words}) < len(words):
        raise _wrong("each device once")
    return words


def layers(value: object) -> object:
    """`0,1` and lists of numbers and words as a list of words."""
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    words = [str(one).strip() for one in given if isinstance(one, str | int) and not isinstance(one, bool)]
    if not words or len(words) != len(given) or not all(re.fullmatch(r"\d+|[a-z][a-z_]*", word) for word in words):
        raise _wrong("numbers of layers, or `sliding_window`")
    return words


def one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def engine_args(value: object) -> object:
    """A map of flags as the words of a command: `true` or nothing is a switch, a list is several words, a map JSON."""
    if not isinstance(value, dict):
        return value
    return [word for flag, given in value.items() for word in _words(str(flag), given)]


def _words(flag: str, given: object) -> list[str]:
    if not _FLAG.fullmatch(flag):
        raise _said(f"`{flag[:40]}` in `engine_args` is no flag", "for instance:\n--max-num-seqs: 16", flag)
    name = flag if flag.startswith("-") else f"--{flag.replace('_', '-')}"
    if given is None or given is True:
        return [name]
    if given is False:
        words = f"`{flag[:40]}: false` in `engine_args` says neither on nor off"
        raise _said(words, f"write its opposite as a switch of its own, perhaps:\n{_opposite(name)}: true", flag)
    if isinstance(given, list):
        return [name, *(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in given)]
    return [name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)]


def _opposite(flag: str) -> str:
    return f"--{flag.removeprefix('--no-')}" if flag.startswith("--no-") else f"--no-{flag.lstrip('-')}"


def without_nul(text: str) -> str:
    if "\0" in text:
        raise _wrong("a text without the character U+0000, which no program takes as an argument")
    return text


def variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise _wrong("the name of a variable: letters, digits and _")
    return name


def service_name(name: str) -> str:
    if not is_name(name):
        raise PydanticCustomError("name", "no name")
    return name
