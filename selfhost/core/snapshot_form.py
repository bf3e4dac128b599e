"""The form of a snapshot (schema selfhost.snapshot/1): whether a document is one, and what in it is not."""

import errno
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from selfhost.core.errors import InputError

SCHEMA = "selfhost.snapshot/1"
_MAPS = ("files", "links", "nodes", "errors", "disks", "env", "nvml", "ids", "docker", "podman", "kubernetes")
_LISTS = ("commands", "libraries")
_AGAIN = "or look at this machine:\nselfhost detect"


def check(snapshot: object, name: str) -> None:
    """Raise InputError unless `snapshot` has the form of schema 1; all its faults at once."""
    schema = snapshot.get("schema", SCHEMA) if isinstance(snapshot, Mapping) else ""
    if schema != SCHEMA:
        if not re.fullmatch(r"selfhost\.snapshot/(\d+)", str(schema)):
            raise no_snapshot(name, f"Its `schema` is not {SCHEMA}.")
        raise InputError(
            f"{name} has schema {schema}, this version reads {SCHEMA}",
            why="A later selfhost wrote it.",
            fix=("read it with the version that wrote it, or look at this machine:\nselfhost detect",),
            id="CF042",
        )
    faults = tuple(_faults(cast("Mapping[str, Any]", snapshot)))
    if faults:
        raise InputError(
            f"{name} is damaged in {len(faults)} place{'s' if len(faults) > 1 else ''}",
            why="The form of its entries is not that of the schema.",
            evidence="\n".join(faults[:5]),
            fix=(f"name a whole snapshot, {_AGAIN}",),
            id="CF043",
        )


def no_snapshot(name: str, why: str) -> InputError:
    return InputError(
        f"{name} is not a snapshot of a machine", why=why, fix=(f"name a snapshot, {_AGAIN}",), id="CF041"
    )


def _faults(snapshot: Mapping[str, Any]) -> Iterator[str]:
    """The outer form first: what lies in a key of another form cannot be named."""
    wrong = [f"`{key}` is not an object" for key in _MAPS if not isinstance(snapshot.get(key, {}), Mapping)]
    wrong += [f"`{key}` is not a list" for key in _LISTS if not isinstance(snapshot.get(key, []), list | tuple)]
    yield from wrong
    if wrong:
        return
    for key in ("files", "links", "env"):
        yield from (
            f"{key}: {name} is not text" for name, text in snapshot.get(key, {}).items() if type(text) is not str
        )
    yield from (f"nodes: {path}" for path, node in snapshot.get("nodes", {}).items() if not _is_node(node))
    yield from (f"errors: {path}: {name}" for path, name in snapshot.get("errors", {}).items() if not _is_errno(name))
    yield from (f"disks: {path}" for path, disk in snapshot.get("disks", {}).items() if not _is_disk(disk))
    for key, is_entry in (("commands", _is_command), ("libraries", _is_text)):
        yield from (f"{key}: entry {at}" for at, entry in enumerate(snapshot.get(key, ())) if not is_entry(entry))
    yield from (f"ids: {key}" for key, value in snapshot.get("ids", {}).items() if not _is_id(key, value))
    yield from _faults_of_tools(snapshot)


def _faults_of_tools(snapshot: Mapping[str, Any]) -> Iterator[str]:
    places: tuple[tuple[str, str, Callable[[object], bool], str], ...] = (
        ("docker", "info", _is_object, "is not an object"),
        ("docker", "version", _is_object, "is not an object"),
        ("podman", "info", _is_object, "is not an object"),
        ("podman", "version", _is_object, "is not an object"),
        ("docker", "containers", _are_objects, "is not a list of objects"),
        ("podman", "containers", _are_objects, "is not a list of objects"),
        ("kubernetes", "objects", _are_objects, "is not a list of objects"),
    )
    for tool, key, is_right, fault in places:
        held = snapshot.get(tool, {})
        if key in held and not is_right(held[key]):
            yield f"{tool}.{key} {fault}"


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_objects(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_id(key: str, value: object) -> bool:
    if key == "groups":
        return isinstance(value, list | tuple) and all(type(group) is int for group in value)
    return key not in ("uid", "gid") or type(value) is int


def _is_node(node: object) -> bool:
    if not isinstance(node, Mapping) or not re.fullmatch("[0-7]+", str(node.get("mode", "0666"))):
        return False
    numbers = all(isinstance(node.get(key, 0), int) for key in ("major", "minor", "uid", "gid"))
    return numbers and (node.get("open", "ok") == "ok" or _is_errno(node["open"]))


def _is_errno(name: object) -> bool:
    return isinstance(name, str) and name in errno.errorcode.values()


def _is_disk(disk: object) -> bool:
    return isinstance(disk, Mapping) and all(isinstance(disk.get(key), int | float) for key in ("total", "free"))


def _is_command(entry: object) -> bool:
    return (
        isinstance(entry, Mapping)
        and isinstance(entry.get("argv"), list | tuple)
        and all(isinstance(part, str) for part in entry["argv"])
        and len(entry["argv"]) > 0
        and isinstance(entry.get("rc", 0), int)
    )
