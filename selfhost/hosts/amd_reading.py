"""What AMD's tools say about one card, in one form. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from selfhost.shapes.host import Tenant

MIB = 2**20
_UNITS = {"": MIB, "b": 1, "kb": 2**10, "mb": MIB, "gb": 2**30, "kib": 2**10, "mib": MIB, "gib": 2**30}
_NOTHING = ("", "n/a", "none", "null", "unknown", "gpu-xx", "not supported")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One card by one tool. Empty, 0 or None is what the tool left out. Bytes."""

    tool: str
    index: int | None = None
    """The tool's own number: it joins the answers of this tool, and of no other."""
    pci: str = ""
    render: str = ""
    kfd_id: int = 0
    node: str = ""
    uuid: str = ""
    hip_uuid: str = ""
    name: str = ""
    device_id: str = ""
    arch: str = ""
    total: int | None = None
    used: int | None = None
    hip: int | None = None
    compute: str = ""
    """`SPX`, `CPX`."""
    memory_mode: str = ""
    """`NPS1`."""
    driver: str = ""
    is_apu: bool = False
    tenants: tuple[Tenant, ...] = ()
    indexes: Mapping[str, int] = field(default_factory=dict)


def joined(first: Reading, second: Reading) -> Reading:
    """Both as one; where both say something the first is believed."""
    known = {item.name: getattr(first, item.name) or getattr(second, item.name) for item in fields(Reading)}
    for name in ("index", "total", "used", "hip"):
        if getattr(first, name) is not None:
            known[name] = getattr(first, name)
    known["indexes"] = {**second.indexes, **first.indexes}
    return replace(first, **known)


def is_same(one: Reading, other: Reading) -> bool:
    """By what names a card for certain; parts of one card share an address and differ in the render node."""
    if one.tool == other.tool and one.index is not None and other.index is not None:
        return one.index == other.index
    if one.render and other.render:
        return one.render == other.render
    for name in ("kfd_id", "node", "pci", "hip_uuid"):
        mine, its = getattr(one, name), getattr(other, name)
        if mine and its:
            return bool(mine == its)
    return False


def merge(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    found: list[Reading] = []
    for reading in readings:
        place = next((at for at, other in enumerate(found) if is_same(other, reading)), None)
        if place is None:
            found.append(reading)
        else:
            found[place] = joined(found[place], reading)
    return tuple(found)


def json_in(text: str) -> Any:
    """The first JSON object or array at the beginning of a line; None when there is none. Warnings may come before."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"(?m)^\s*(?=[\[{])", text[:2_000_000]):
        try:
            value, _ = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(row, dict) for row in value)):
            return value
    return None


def lowered(value: Any) -> Any:
    """The same tree with every key in small letters: the tools change their minds about the case."""
    if isinstance(value, Mapping):
        return {str(key).strip().lower().replace(" ", "_"): lowered(inner) for key, inner in value.items()}
    return [lowered(inner) for inner in value] if isinstance(value, list) else value


def word(value: object) -> str:
    """A text, or nothing for the many ways in which the tools say that they do not know."""
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return "" if text.lower() in _NOTHING or text.strip("xX- ") == "" else text


def whole(value: object) -> int | None:
    """A decimal number; None for every other thing."""
    text = word(value)
    return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else None


def bytes_of(value: object) -> int | None:
    """`{"value": 196592, "unit": "MB"}`, `196592 MB` or 196592: MB and no unit at all mean MiB."""
    unit = ""
    if isinstance(value, Mapping):
        unit, value = word(value.get("unit", "")), value.get("value")
    found = re.fullmatch(r"(\d{1,18})(?:\.\d+)?\s*([A-Za-z]*)", word(value), re.ASCII)
    if not found:
        return None
    factor = _UNITS.get((found[2] or unit).lower())
    return None if factor is None else int(found[1]) * factor


def pci_address(text: object) -> str:
    """`0000:1E:00.0` in small letters; empty for what is no address."""
    found = re.fullmatch(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", word(text).lower())
    return f"{(found[1] or '0000')[-4:]}:{found[2]}" if found else ""


def hexadecimal(text: object) -> str:
    """`0x73df` and `73DF` as four small digits."""
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{1,4})", word(text).lower())
    return found[1].rjust(4, "0") if found else ""


def rows(tree: Any) -> Iterator[Mapping[str, Any]]:
    """The cards of amd-smi's JSON: a bare array, or an object around it. Which one changes with the subcommand."""
    if isinstance(tree, list):
        yield from (row for row in tree if isinstance(row, Mapping))
    elif isinstance(tree, Mapping):
        if "gpu" in tree:
            yield tree
        for name in ("gpu_data", "gpus", "gpu_list"):
            if isinstance(tree.get(name), list):
                yield from rows(tree[name])


def indented(text: str) -> list[dict[str, Any]]:
    """amd-smi's plain form: `KEY: value` lines, nested by indentation, one block a `GPU:`."""
    found: list[dict[str, Any]] = []
    path: list[tuple[int, dict[str, Any]]] = []
    for line in text.splitlines():
        shape = re.fullmatch(r"( *)([A-Za-z][\w /-]*):(?: (.*))?", line.rstrip())
        if not shape:
            continue
        depth, key, value = len(shape[1]), shape[2].strip().lower().replace(" ", "_"), (shape[3] or "").strip()
        if key == "gpu" and not depth:
            found.append({"gpu": value})
            path = [(0, found[-1])]
        elif path:
            while len(path) > 1 and path[-1][0] >= depth:
                path.pop()
            inside = path[-1][1]
            if value:
                inside[key] = value
            else:
                inside[key] = {}
                path.append((depth, inside[key]))
    return found
