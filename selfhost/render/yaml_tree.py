"""Data as YAML that a person would write: block maps, short lists in a line, scripts as they are, reasons above."""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from selfhost.render.escape import Escaped, comment, yaml
from selfhost.render.words import by_flag

WIDTH = 120
_FLOW = 96
"""Longest map or list in one line."""
_WORDS = ("args", "command")
"""Lists that are a command line: one line for each flag with its values."""
_QUANTITY = re.compile(r"[1-9]\d*(?:[KMGT]i|m)\Z")
Why = Callable[[tuple[str, ...]], str]
"""The reason for a place in the tree; empty for none."""


def dump(tree: Mapping[str, Any], why: Why) -> Escaped:
    """The same tree gives the same bytes; keys keep their order."""
    return Escaped("".join(f"{line}\n" for line in _map(tree, 0, (), why)))


def _map(tree: Mapping[str, Any], depth: int, path: tuple[str, ...], why: Why) -> Iterator[str]:
    for key, value in tree.items():
        here = (*path, key)
        yield from _reason(why(here), depth)
        yield from _entry(f"{'  ' * depth}{yaml(key)}:", value, depth, here, why)


def _entry(head: str, value: object, depth: int, path: tuple[str, ...], why: Why) -> Iterator[str]:
    """`head` ends with a colon."""
    if isinstance(value, str) and _is_script(value):
        yield f"{head} |"
        yield from (f"{'  ' * (depth + 1)}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    elif not isinstance(value, Mapping | list | tuple):
        yield f"{head} {_scalar(value)}"
    elif _fits(value, head, path, why):
        yield f"{head} {_flow(value)}"
    elif isinstance(value, Mapping):
        yield head
        yield from _map(value, depth + 1, path, why)
    elif path[-1] in _WORDS and all(isinstance(word, str) and not _is_script(word) for word in value):
        yield f"{head} ["
        for words in by_flag(value):
            yield f"{'  ' * (depth + 1)}{', '.join(yaml(word) for word in words)},"
        yield f"{'  ' * depth}]"
    else:
        yield head
        yield from _list(value, depth + 1, path, why)


def _list(values: Sequence[Any], depth: int, path: tuple[str, ...], why: Why) -> Iterator[str]:
    pad = "  " * depth
    for number, value in enumerate(values):
        here = (*path, str(number))
        if isinstance(value, str) and _is_script(value):
            yield f"{pad}- |"
            yield from (f"{pad}  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
        elif not isinstance(value, Mapping | list | tuple):
            yield f"{pad}- {_scalar(value)}"
        elif _fits(value, f"{pad}-", here, why):
            yield f"{pad}- {_flow(value)}"
        elif isinstance(value, Mapping):
            lines = list(_map(value, depth + 1, here, why))
            first = next(place for place, line in enumerate(lines) if not line.lstrip().startswith("#"))
            lines[first] = f"{pad}- {lines[first].lstrip()}"
            yield from lines
        else:
            yield f"{pad}-"
            yield from _list(value, depth + 1, here, why)


def _fits(value: object, head: str, path: tuple[str, ...], why: Why) -> bool:
    """Short, flat enough, and without a reason inside."""
    if _depth(value) > 2 or any(why((*path, *inner)) for inner in _paths(value)):
        return False
    if isinstance(value, Mapping) and path[-1] in ("metadata", "spec", "labels", "annotations") and value:
        return False
    text = _flow(value)
    return "\n" not in text and len(head) + len(text) <= _FLOW


def _depth(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + max((_depth(one) for one in value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max((_depth(one) for one in value), default=0)
    return 3 if isinstance(value, str) and _is_script(value) else 0


def _paths(value: object) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield (key,)
            yield from ((key, *rest) for rest in _paths(inner))


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{yaml(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(inner) for inner in value) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _QUANTITY.match(value) else yaml(value)
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"{type(value).__name__} has no form in YAML")


def _is_script(text: str) -> bool:
    """Several lines that come back as they are from a literal block."""
    lines = text.removesuffix("\n").split("\n")
    plain = all(letter.isprintable() or letter == "\n" for letter in text)
    return len(lines) > 1 and text.endswith("\n") and plain and bool(lines[0]) and not lines[0].startswith(" ")


def _reason(text: str, depth: int) -> Iterator[str]:
    if text:
        mark = f"{'  ' * depth}# "
        yield from textwrap.wrap(
            comment(text), WIDTH, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False,
            break_long_words=False,
        )  # fmt: skip
