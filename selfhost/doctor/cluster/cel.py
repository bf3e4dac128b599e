"""The part of CEL that device selectors are written in, against one device: what of it is not met. Pure.

Terms joined by `&&`: comparisons of attributes, of capacities with quantities, of versions. Anything else is unknown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from selfhost.doctor.cluster.devices import Device
from selfhost.hosts.cluster_quantity import quantity

_WHERE: Final = r"""device\.(?P<of>attributes|capacity)\[\s*["'](?P<domain>[^"']+)["']\s*\]\.(?P<name>\w+)"""
_COMPARED: Final = re.compile(
    _WHERE
    + r"""\.compareTo\(\s*(?P<kind>quantity|semver)\(\s*["'](?P<value>[^"']+)["'][^)]*\)\s*\)"""
    + r"""\s*(?P<op>[<>]=?|==|!=)\s*0"""
)
_GREATER: Final = re.compile(
    _WHERE
    + r"""\.(?P<op>isGreaterThan|isLessThan)\(\s*(?P<kind>quantity|semver)\(\s*["'](?P<value>[^"']+)["'][^)]*\)\s*\)"""
)
_EQUAL: Final = re.compile(_WHERE + r"""\s*(?P<op>==|!=|[<>]=?)\s*(?P<value>"[^"]*"|'[^']*'|true|false|-?\d+)""")
_ONE_OF: Final = re.compile(_WHERE + r"""\s+in\s+\[(?P<value>[^\]]*)\]""")
_BARE: Final = re.compile(r"(?P<not>!?)" + _WHERE + r"$")
_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*["'](?P<value>[^"']+)["']""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """One term that a device does not meet; `unknown` where the term is beyond us."""

    term: str
    actual: str
    unknown: bool = False

    def __str__(self) -> str:
        return f"{self.term} cannot be told" if self.unknown else f"wants {self.term}, has {self.actual}"


def lacks(expression: str, device: Device) -> Iterator[Lack]:
    for term in _terms(expression):
        found = _lack(term, device)
        if found is not None:
            yield found


def _terms(expression: str) -> Iterator[str]:
    for one in expression.split("&&"):
        term = " ".join(one.split())
        while term.startswith("(") and term.endswith(")"):
            term = term[1:-1].strip()
        if term and term != "true":
            yield term


def _lack(term: str, device: Device) -> Lack | None:
    if match := _DRIVER.fullmatch(term):
        return None if device.driver == match["value"] else Lack(term=f"driver {match['value']}", actual=device.driver)
    for pattern in (_COMPARED, _GREATER, _EQUAL, _ONE_OF, _BARE):
        if match := pattern.fullmatch(term):
            return _judged(match, device)
    return Lack(term=term, actual="", unknown=True)


def _judged(match: re.Match[str], device: Device) -> Lack | None:
    found = match.groupdict()
    name, op = found["name"], found.get("op") or ("in" if "value" in found else "")
    held = device.capacity if found["of"] == "capacity" else device.attributes
    own = name if found["domain"] == device.driver else f"{found['domain']}/{name}"
    actual = held.get(own)
    value = found.get("value")
    if actual is None:
        return Lack(term=_shown(name, op, value), actual="nothing of that name")
    met = _met(actual, op, value, kind=found.get("kind"), negated=bool(found.get("not")))
    if met is None:
        return Lack(term=match[0], actual=str(actual), unknown=True)
    return None if met else Lack(term=_shown(name, op, value), actual=str(actual))


def _shown(name: str, op: str, value: str | None) -> str:
    words = {"isGreaterThan": ">", "isLessThan": "<"}
    bare = value.strip("\"'") if value else ""
    return " ".join(part for part in (name, words.get(op, op), bare) if part)


def _met(actual: Any, op: str, value: str | None, *, kind: str | None, negated: bool) -> bool | None:
    if value is None:
        return bool(actual) is not negated
    if op == "in":
        return str(actual) in {one.strip().strip("\"'") for one in value.split(",")}
    left: Any
    right: Any
    if kind == "quantity":
        left, right = quantity(actual), quantity(value)
    elif kind == "semver":
        left, right = _version(str(actual)), _version(value)
    elif value in ("true", "false"):
        left, right = bool(actual), value == "true"
    elif value[0] in "\"'":
        left, right = str(actual), value[1:-1]
    else:
        left, right = quantity(actual), quantity(value)
    if left is None or right is None:
        return None
    return bool({
        "==": left == right, "!=": left != right, ">=": left >= right, "<=": left <= right,
        ">": left > right, "<": left < right, "isGreaterThan": left > right, "isLessThan": left < right,
    }[op])  # fmt: skip


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0]))
