"""A machine out of a snapshot (schema selfhost.snapshot/1): what is not in it does not exist there."""

import errno
import json
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from selfhost.core.errors import InputError
from selfhost.core.system import Completed, Node, NodeKind

SCHEMA = "selfhost.snapshot/1"
_MAPS = ("files", "links", "nodes", "errors", "disks", "env")
_MAX_LINKS = 40  # the kernel's own limit, path_resolution(7)


class Recorded:
    """Implements System over a snapshot. Every key may be missing, in a file all but `schema`.

    Parent directories are implied.
    """

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        _check(snapshot, "this snapshot")
        self._files: Mapping[str, str] = snapshot.get("files", {})
        self._links: Mapping[str, str] = snapshot.get("links", {})
        self._nodes: Mapping[str, Mapping[str, Any]] = snapshot.get("nodes", {})
        self._errors: Mapping[str, str] = snapshot.get("errors", {})
        self._disks: Mapping[str, Mapping[str, float]] = snapshot.get("disks", {})
        self._env: Mapping[str, str] = snapshot.get("env", {})
        self._commands: Sequence[Mapping[str, Any]] = snapshot.get("commands", ())
        self.ids: Mapping[str, Any] = snapshot.get("ids", {})
        self._children = _tree((*self._files, *self._links, *self._nodes, *self._errors))

    @classmethod
    def load(cls, path: str | Path) -> "Recorded":
        """Read a saved snapshot. Raises InputError when it cannot be read or is not one."""
        try:
            snapshot = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"the snapshot {path} cannot be read",
                why=f"{error.strerror or error}.",
                fix=("name a readable snapshot, or leave --from out to look at this machine:\nselfhost detect",),
                id="CF040",
            ) from error
        except ValueError as error:
            raise InputError(
                f"{path} is not JSON, so it is no snapshot of a machine",
                why="It is cut off, or another file.",
                evidence=str(error),
                fix=("name a whole snapshot, or leave --from out to look at this machine:\nselfhost detect",),
                id="CF041",
            ) from error
        _check(snapshot, str(path))
        if "schema" not in snapshot:
            raise _no_snapshot(str(path), f"It names no `schema`; that of a snapshot is {SCHEMA}.")
        return cls(snapshot)

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    def read(self, path: str) -> str:
        place = self._resolve(path)
        if place in self._files:
            return self._files[place]
        if place in self._children:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if place in self._nodes:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def listdir(self, path: str) -> tuple[str, ...]:
        place = self._resolve(path)
        if place in self._children:
            return tuple(sorted(self._children[place]))
        kind = errno.ENOTDIR if self._exists(place) else errno.ENOENT
        raise OSError(kind, os.strerror(kind), path)

    def readlink(self, path: str) -> str:
        parent, name = posixpath.split(_clean(path))
        for place in (_clean(path), posixpath.join(self._resolve(parent), name)):
            if place in self._links:
                return self._links[place]
        kind = errno.EINVAL if self._exists(_clean(path)) else errno.ENOENT
        raise OSError(kind, os.strerror(kind), path)

    def stat(self, path: str) -> Node:
        place = self._resolve(path, refuse=False)
        if place in self._nodes:
            return _node(self._nodes[place])
        if place in self._children:
            return Node(kind="d", mode=0o755, uid=0, gid=0)
        if place in self._files:
            return Node(kind="f", mode=0o644, uid=0, gid=0, size=len(self._files[place].encode()))
        if place in self._errors:
            return Node(kind="f", mode=0o400, uid=0, gid=0)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def try_open(self, path: str) -> str:
        try:
            place = self._resolve(path)
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, "EIO")
        if place in self._nodes:
            return str(self._nodes[place].get("open", "ok"))
        if place in self._children:
            return "EISDIR"
        return "ok" if place in self._files else "ENOENT"

    def disk(self, path: str) -> tuple[int, int]:
        place = _clean(path)
        while place not in self._disks and place != "/":
            place = posixpath.dirname(place)
        if place not in self._disks:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        seen = self._disks[place]
        return int(seen["total"]), int(seen["free"])

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Completed:
        """The recorded answer. A command that is not listed is not installed, whatever its arguments."""
        del timeout_s, env, stdin
        asked = tuple(argv)
        for command in self._commands:
            if tuple(command["argv"]) == asked:
                late = bool(command.get("timed_out", False))
                return Completed(
                    argv=asked,
                    rc=int(command.get("rc", 124 if late else 0)),
                    stdout=str(command.get("stdout", "")),
                    stderr=str(command.get("stderr", "")),
                    timed_out=late,
                )
        return Completed(argv=asked, rc=127, stderr=f"{asked[0]}: not found", missing=True)

    def _exists(self, place: str) -> bool:
        return any(place in kind for kind in (self._files, self._nodes, self._errors, self._links, self._children))

    def _resolve(self, path: str, *, refuse: bool = True) -> str:
        """Where `path` leads when links are followed. A path stored as it is asked for wins over a link on its way."""
        place = _clean(path)
        for _ in range(_MAX_LINKS):
            if refuse and place in self._errors:
                kind = getattr(errno, self._errors[place])
                raise OSError(kind, os.strerror(kind), path)
            if place in self._files or place in self._nodes or place in self._children:
                return place
            link = self._first_link(place)
            if link is None:
                return place
            target = posixpath.join(posixpath.dirname(link), self._links[link])
            place = _clean(target + place[len(link) :])
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _first_link(self, place: str) -> str | None:
        """The shortest part of `place` that is a link."""
        ends = [*(match.start() for match in re.finditer("/", place) if match.start()), len(place)]
        return next((place[:end] for end in ends if place[:end] in self._links), None)


def _clean(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _tree(paths: Sequence[str]) -> dict[str, set[str]]:
    """Names by directory; a path with a trailing slash is an empty directory."""
    children: dict[str, set[str]] = {}
    for path in paths:
        place = _clean(path)
        if path.endswith("/"):
            children.setdefault(place, set())
        while place != "/":
            parent, name = posixpath.split(place)
            children.setdefault(parent, set()).add(name)
            place = parent
    return children


def _node(seen: Mapping[str, Any]) -> Node:
    kind = seen.get("type", "c")
    return Node(
        kind=cast("NodeKind", kind) if kind in ("c", "b", "d", "f", "l") else "other",
        mode=int(str(seen.get("mode", "0666")), 8),
        uid=int(seen.get("uid", 0)),
        gid=int(seen.get("gid", 0)),
        major=int(seen.get("major", 0)),
        minor=int(seen.get("minor", 0)),
    )


def _check(snapshot: object, name: str) -> None:
    """Raise InputError unless `snapshot` has the form of schema 1; all its faults at once."""
    schema = snapshot.get("schema", SCHEMA) if isinstance(snapshot, Mapping) else ""
    if schema != SCHEMA:
        if not re.fullmatch(r"selfhost\.snapshot/(\d+)", str(schema)):
            raise _no_snapshot(name, f"Its `schema` is not {SCHEMA}.")
        raise InputError(
            f"{name} has schema {schema}, this version reads {SCHEMA}",
            why="A later selfhost wrote it.",
            fix=("read it with the version that wrote it, or look at this machine:\nselfhost detect",),
            id="CF042",
        )
    faults = _faults(cast("Mapping[str, Any]", snapshot))
    if faults:
        raise InputError(
            f"{name} is damaged in {len(faults)} place{'s' if len(faults) > 1 else ''}",
            why="The form of its entries is not that of the schema.",
            evidence="\n".join(faults[:5]),
            fix=("name a whole snapshot, or leave --from out to look at this machine:\nselfhost detect",),
            id="CF043",
        )


def _no_snapshot(name: str, why: str) -> InputError:
    return InputError(
        f"{name} is not a snapshot of a machine",
        why=why,
        fix=("name a snapshot, or leave --from out to look at this machine:\nselfhost detect",),
        id="CF041",
    )


def _faults(snapshot: Mapping[str, Any]) -> list[str]:
    faults = [f"`{key}` is not an object" for key in _MAPS if not isinstance(snapshot.get(key, {}), Mapping)]
    if not isinstance(snapshot.get("commands", []), list | tuple):
        faults.append("`commands` is not a list")
    if faults:
        return faults
    for key in ("files", "links", "env"):
        faults += [
            f"{key}: {name} is not text" for name, text in snapshot.get(key, {}).items() if type(text) is not str
        ]
    faults += [f"nodes: {path}" for path, node in snapshot.get("nodes", {}).items() if not _is_node(node)]
    faults += [f"errors: {path}: {name}" for path, name in snapshot.get("errors", {}).items() if not _is_errno(name)]
    faults += [f"disks: {path}" for path, disk in snapshot.get("disks", {}).items() if not _is_disk(disk)]
    faults += [
        f"commands: entry {number}"
        for number, entry in enumerate(snapshot.get("commands", ()))
        if not _is_command(entry)
    ]
    return faults


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
