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
from selfhost.core.recorded_engines import answer
from selfhost.core.snapshot_form import SCHEMA, check, no_snapshot
from selfhost.core.system import Completed, Node, NodeKind

_MAX_LINKS = 40  # the kernel's own limit, path_resolution(7)


class Recorded:
    """Implements System over a snapshot. Every key may be missing, in a file all but `schema`.

    Parent directories are implied.
    """

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        check(snapshot, "this snapshot")
        self._snapshot = snapshot
        self._files: Mapping[str, str] = snapshot.get("files", {})
        self._links: Mapping[str, str] = snapshot.get("links", {})
        self._nodes: Mapping[str, Mapping[str, Any]] = snapshot.get("nodes", {})
        self._errors: Mapping[str, str] = snapshot.get("errors", {})
        self._disks: Mapping[str, Mapping[str, float]] = snapshot.get("disks", {})
        self._env: Mapping[str, str] = snapshot.get("env", {})
        self._commands: Sequence[Mapping[str, Any]] = snapshot.get("commands", ())
        self.ids: Mapping[str, Any] = snapshot.get("ids", {})
        self._nvml: Mapping[str, Any] = snapshot.get("nvml", {})
        self._libraries: Sequence[str] | None = snapshot.get("libraries")
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
                fix=("name a readable snapshot, or look at this machine:\nselfhost detect",),
                id="CF040",
            ) from error
        except ValueError as error:
            raise InputError(
                f"{path} is not JSON, so it is no snapshot of a machine",
                why="It is cut off, or another file.",
                evidence=str(error),
                fix=("name a whole snapshot, or look at this machine:\nselfhost detect",),
                id="CF041",
            ) from error
        check(snapshot, str(path))
        if "schema" not in snapshot:
            raise no_snapshot(str(path), f"It names no `schema`; that of a snapshot is {SCHEMA}.")
        return cls(snapshot)

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def argvs(self) -> tuple[tuple[str, ...], ...]:
        """Every command that was recorded; one may have been asked in another form than ours."""
        return tuple(tuple(command["argv"]) for command in self._commands)

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
        known = answer(self._snapshot, asked)
        return known or Completed(argv=asked, rc=127, stderr=f"{asked[0]}: not found", missing=True)

    def nvml(self) -> Mapping[str, Any]:
        return self._nvml

    def libraries(self) -> tuple[str, ...] | None:
        return None if self._libraries is None else tuple(self._libraries)

    @property
    def kubernetes(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self._snapshot.get("kubernetes", {}).get("objects", ()))

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
