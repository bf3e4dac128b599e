"""Reaching into API objects, any part of which may be missing."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]


def at(value: object, *keys: str) -> Any:
    """A value deep in an object; None where the path ends early."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def part(value: object, *keys: str) -> Object:
    """A mapping deep in an object; an empty one where there is none."""
    found = at(value, *keys)
    return found if isinstance(found, Mapping) else {}


def rows(value: object, *keys: str) -> tuple[Object, ...]:
    """Mappings of a list deep in an object."""
    found = at(value, *keys)
    return tuple(one for one in found if isinstance(one, Mapping)) if isinstance(found, Sequence) else ()


def words(value: object, *keys: str) -> tuple[str, ...]:
    """A list of texts deep in an object."""
    found = at(value, *keys)
    return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()


def text(value: object, *keys: str) -> str:
    found = at(value, *keys)
    return "" if found is None else str(found)


def texts(value: object, *keys: str) -> dict[str, str]:
    """A map of strings, as labels are."""
    return {str(key): str(one) for key, one in part(value, *keys).items()}


def number(value: object, *keys: str, default: int = 0) -> int:
    found = at(value, *keys)
    try:
        return int(found) if found is not None else default
    except (TypeError, ValueError):
        return default


def name(one: Object) -> str:
    return text(one, "metadata", "name")


def namespace(one: Object) -> str:
    return text(one, "metadata", "namespace")


def labels(one: Object) -> dict[str, str]:
    return texts(one, "metadata", "labels")


def label(one: Object) -> str:
    """`pod team/qwen3-4b-0`: how findings name an object."""
    kind = text(one, "kind").lower()
    where = f"{namespace(one)}/" if namespace(one) else ""
    return f"{kind} {where}{name(one)}"


def condition(one: Object, type: str) -> Object:
    return next((found for found in rows(one, "status", "conditions") if found.get("type") == type), {})


def holds(one: Object, type: str) -> bool:
    return text(condition(one, type), "status") == "True"


def cut(words: str, width: int = 300) -> str:
    """One line of what somebody else said."""
    flat = " ".join(words.split())
    return flat if len(flat) <= width else f"{flat[: width - 1].rstrip()}…"


def quoted(words: str) -> str:
    return shlex.quote(words)


def counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
