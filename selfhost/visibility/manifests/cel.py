"""CEL expressions that choose devices: what their compiler would refuse, as far as reading them tells."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.claims import elements, requests
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

CEL = "https://kubernetes.io/docs/reference/using-api/cel/"
_TEXT = re.compile(
    r"[rRbB]?\"\"\".*?\"\"\"|[rRbB]?'''.*?'''|[rRbB]?\"(?:\\.|[^\"\\\n])*\"|[rRbB]?'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_QUANTITY = re.compile(r"(?<![\w.'\"])(\d+(?:\.\d+)?)(?:(?P<unit>[KMGTPE]i?B?)|\s*(?P<spaced>[KMGTPE]iB?))(?!\w)")
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_MEMBER = re.compile(r"\bdevice\.(?P<member>[A-Za-z_]\w*)")
_MEMBERS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_HELD = re.compile(r"\$\{|\{\{")
_NATIVE = re.compile(r"\bdevice\.capacity\[[^\]]*\]\.\w+\s*(?:>=?|<=?)\s*(?P<right>[\w(])")
MEMORY: Final = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) >= 0"


def expressions(thing: Tree) -> Iterator[Tree]:
    for request in requests(thing):
        several = elements(request, "firstAvailable")
        for one in (request, request.at("exactly"), *several):
            for selector in elements(one, "selectors"):
                yield from ([found] if (found := selector.at("cel", "expression")) is not None else [])
    if thing.said("kind") == "DeviceClass":
        for selector in elements(thing, "spec", "selectors"):
            yield from ([found] if (found := selector.at("cel", "expression")) is not None else [])


def fault(text: str) -> tuple[str, str] | None:
    """What is wrong, and what to write; None where nothing is seen to be."""
    if not text.strip():
        return "it is empty", f"write a condition:\n{MEMORY}"
    plain = _TEXT.sub(lambda found: "'" + "x" * (len(found[0]) - 2) + "'", text)
    bare = _QUANTITY.search(plain)
    if bare:
        shown = text[bare.start() : bare.end()]
        return (
            f"`{shown}` is a number with letters behind it",
            f"wrap it in quantity('…') and compare so:\n{MEMORY}",
        )
    return _form(plain) or _meaning(plain)


def _form(plain: str) -> tuple[str, str] | None:
    if re.search(r"['\"]", re.sub(r"'x*'", "", plain)):
        return "a quote is not closed", "close the quote"
    unbalanced = _unbalanced(plain)
    if unbalanced:
        return unbalanced, "close each bracket where it belongs"
    return next(((said, fix) for pattern, said, fix in _FORMS if pattern.search(plain)), None)


def _meaning(plain: str) -> tuple[str, str] | None:
    member = next((found["member"] for found in _MEMBER.finditer(plain) if found["member"] not in _MEMBERS), "")
    if member:
        return f"device has no {member}: only {', '.join(_MEMBERS[:3])}", f"ask the driver's own map:\n{MEMORY}"
    if _NATIVE.search(plain):
        return "a capacity is a quantity, which < and > do not compare", f"use compareTo:\n{MEMORY}"
    return None


_FORMS: Final = (
    (
        re.compile(r"\b(?:and|or|not)\b"),
        "`and`, `or` and `not` are no operators of CEL",
        "write && for and, || for or, ! for not",
    ),
    (re.compile(r"(?<![=!<>])=(?!=)"), "`=` is no comparison", "write == instead of ="),
    (re.compile(r"(?<!&)&(?!&)|(?<!\|)\|(?!\|)"), "`&` and `|` are no operators of CEL", "write && or ||"),
    (
        re.compile(r"(?:&&|\|\||[<>=!]=|[<>+*/%])\s*\Z|\A\s*(?:&&|\|\||[<>=]=?|[*/%])"),
        "one side of an operator is missing",
        "write what it is compared with",
    ),
)


def _unbalanced(plain: str) -> str:
    waiting: list[str] = []
    for letter in plain:
        if letter in "([{":
            waiting.append(letter)
        elif letter in _PAIRS and (not waiting or waiting.pop() != _PAIRS[letter]):
            return f"`{letter}` closes nothing"
    return f"`{waiting[-1]}` is not closed" if waiting else ""


@manifest_rule("KX553", Severity.ERROR, source=CEL)
def expression_does_not_compile(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        for expression in expressions(thing):
            seen = None if _HELD.search(expression.text) else fault(expression.text)
            if seen is None:
                continue
            yield Found(
                title=f"a selector of {label(thing)} is no expression that CEL takes",
                place=place(thing, expression),
                evidence=f"{expression.text.strip()[:120]} · {seen[0]}",
                why="The API server compiles it and refuses the object: `compilation failed: … Syntax error`, or "
                "`undefined field`.",
                fix=(seen[1],),
            )
