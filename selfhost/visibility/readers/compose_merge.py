"""One Compose service over another: an override file, `extends`. As Compose merges them, with the places kept."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from selfhost.core.tree import Tree

_REPLACED: Final = ("command", "entrypoint")
_BY_NAME: Final = ("environment", "labels", "annotations", "sysctls")
RESET: Final = "!reset"
OVERRIDE: Final = "!override"


def merged(under: Tree, over: Tree, *, key: str = "") -> Tree:
    """`over` wins: maps key by key, lists appended, a command replaced, variables by name, mounts by target."""
    if over.tag == OVERRIDE or key in _REPLACED or over.is_null:
        return under if over.is_null and not over.tag and key not in _REPLACED else over
    if key in _BY_NAME:
        under, over = by_name(under), by_name(over)
    if under.map is not None and over.map is not None:
        return _maps(under, over)
    if under.list is not None and over.list is not None:
        return replace(over, list=_unique([*under.list, *over.list], _IDENTITY.get(key)))
    if {under.is_scalar, over.is_scalar} == {True, False} and key in ("env_file", "tmpfs"):
        return replace(over, list=[*_listed(under), *_listed(over)], map=None)
    return over


def _maps(under: Tree, over: Tree) -> Tree:
    values = dict(under.items())
    keys = dict(under.keys)
    for key, tree in over.items():
        if tree.tag == RESET:
            values.pop(key, None)
            continue
        values[key] = merged(values[key], tree, key=key) if key in values else tree
        keys[key] = over.keys[key]
    return replace(over, map=values, keys=keys)


def without_resets(tree: Tree) -> Tree:
    """A `!reset` with nothing below it takes away nothing but itself."""
    if tree.map is None or not any(value.tag == RESET for value in tree.map.values()):
        return tree
    return replace(tree, map={key: value for key, value in tree.map.items() if value.tag != RESET})


def by_name(tree: Tree) -> Tree:
    """`- NAME=value` as `NAME: value`; an element without `=` is a null."""
    if tree.list is None:
        return tree
    values: dict[str, Tree] = {}
    keys: dict[str, tuple[int, int, str]] = {}
    for element in tree.list:
        name, equals, value = element.text.partition("=")
        if element.is_scalar and name:
            values[name] = replace(element, text=value if equals else "", quoted=bool(equals))
            keys[name] = (element.line, element.column, element.path)
    return replace(tree, list=None, map=values, keys=keys)


def _listed(tree: Tree) -> list[Tree]:
    return tree.list if tree.list is not None else [tree]


def _target(tree: Tree) -> str:
    """Where a mount or device comes out inside, by which two of them are the same."""
    if tree.map is not None:
        return tree.said("target") or tree.said("source")
    parts = tree.text.split(":")
    return parts[1] if len(parts) > 1 else parts[0]


_IDENTITY: Final[dict[str, Callable[[Tree], str]]] = {
    "volumes": _target,
    "devices": _target,
    **dict.fromkeys(
        ("cap_add", "cap_drop", "group_add", "security_opt", "device_cgroup_rules", "env_file"), lambda tree: tree.text
    ),
}


def _unique(elements: list[Tree], identity: Callable[[Tree], str] | None) -> list[Tree]:
    if identity is None:
        return elements
    kept: dict[str, Tree] = {}
    for number, element in enumerate(elements):
        kept[identity(element) or f"#{number}"] = element
    return list(kept.values())
