"""Eyes that remember: whatever is looked at through them can be written down as a snapshot and looked at again."""

import errno
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selfhost.core.device_env import is_device_variable, only_devices
from selfhost.core.recorded_engines import key_of
from selfhost.core.redact import is_secret
from selfhost.core.snapshot_form import SCHEMA
from selfhost.core.system import Completed, Node, System

# What is not there needs no entry, and that something is a folder is told by what lies in it.
_UNTOLD = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENOSYS}


class Recorder:
    """Implements System over another one. Thread-safe. The snapshot is not redacted yet: core.redaction does that."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._lock = threading.Lock()
        self._files: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._stats: dict[str, Node] = {}
        self._opened: dict[str, str] = {}
        self._errors: dict[str, str] = {}
        self._disks: dict[str, dict[str, int]] = {}
        self._listed: dict[str, tuple[str, ...]] = {}
        self._said: dict[tuple[str, ...], Completed] = {}
        self._nvml: Mapping[str, Any] = {}
        self._libraries: tuple[str, ...] | None = None
        self._env = _NotedEnv(system.env)

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def ids(self) -> Mapping[str, Any]:
        return self._system.ids

    @property
    def kubernetes(self) -> tuple[Mapping[str, Any], ...]:
        return self._system.kubernetes

    def read(self, path: str) -> str:
        try:
            text = self._system.read(path)
        except OSError as error:
            self._refused(path, error)
            raise
        kept = only_devices(text) if path.startswith("/proc/") and path.endswith("/environ") else text
        with self._lock:
            self._files.setdefault(path, kept)  # what was seen first: a look at the whole rests on it
        return text

    def listdir(self, path: str) -> tuple[str, ...]:
        try:
            names = self._system.listdir(path)
        except OSError as error:
            self._refused(path, error)
            raise
        with self._lock:
            self._listed[path] = names
        return names

    def readlink(self, path: str) -> str:
        target = self._system.readlink(path)
        with self._lock:
            self._links[path] = target
        return target

    def stat(self, path: str) -> Node:
        try:
            node = self._system.stat(path)
        except OSError as error:
            self._refused(path, error)
            raise
        with self._lock:
            self._stats[path] = node
        return node

    def try_open(self, path: str) -> str:
        said = self._system.try_open(path)
        with self._lock:
            self._opened[path] = said
        return said

    def disk(self, path: str) -> tuple[int, int]:
        total, free = self._system.disk(path)
        with self._lock:
            self._disks[path] = {"total": total, "free": free}
        return total, free

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Completed:
        done = self._system.run(argv, timeout_s=timeout_s, env=env, stdin=stdin)
        with self._lock:
            self._said.setdefault(tuple(argv), done)
        return done

    def nvml(self) -> Mapping[str, Any]:
        self._nvml = self._system.nvml()
        return self._nvml

    def libraries(self) -> tuple[str, ...] | None:
        self._libraries = self._system.libraries()
        return self._libraries

    def snapshot(self) -> dict[str, Any]:
        """Everything that was seen so far (schema selfhost.snapshot/1); keys without content are left out."""
        with self._lock:
            listed = [f"{folder.rstrip('/')}/{name}" for folder, names in self._listed.items() for name in names]
            opened = [path for path, said in self._opened.items() if said != "ENOENT"]
        known = {*self._files, *self._links, *self._stats, *self._errors}
        for path in (*listed, *opened):
            if path not in known and not any(other.startswith(f"{path}/") for other in known):
                self._look_again(path)
        commands, engines = self._commands()
        held: dict[str, Any] = {
            "files": {**self._files, **{f"{folder.rstrip('/')}/": "" for folder in self._folders()}},
            "links": dict(self._links),
            "nodes": dict(self._nodes()),
            "commands": commands,
            "errors": dict(self._errors),
            "disks": dict(self._disks),
            "env": dict(self._env.noted),
            "libraries": list(self._libraries or ()),
            "ids": {key: list(value) if key == "groups" else value for key, value in self.ids.items()},
            "nvml": dict(self._nvml),
            "kubernetes": {"objects": [dict(one) for one in self.kubernetes]} if self.kubernetes else {},
            **engines,
        }
        return {"schema": SCHEMA, **{key: value for key, value in held.items() if value}}

    def _refused(self, path: str, error: OSError) -> None:
        name = errno.errorcode.get(error.errno or 0)
        if name and error.errno not in _UNTOLD:
            with self._lock:
                self._errors[path] = name

    def _look_again(self, path: str) -> None:
        """What a listing named and nobody asked about: only what kind of thing it is, so that it is listed again."""
        try:
            self._stats[path] = self._system.stat(path)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._stats[path] = Node(kind="c" if path in self._opened else "f", mode=0, uid=0, gid=0)
            else:
                self._links.setdefault(path, "missing")  # a link that leads nowhere

    def _folders(self) -> Iterator[str]:
        """Directories with nothing noted in them."""
        yield from (folder for folder, names in self._listed.items() if not names)
        yield from (path for path, node in self._stats.items() if node.kind == "d" and path != "/")

    def _nodes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for path, node in self._stats.items():
            if node.kind == "d":
                continue
            entry: dict[str, Any] = {"type": node.kind, "mode": f"{node.mode:04o}", "uid": node.uid, "gid": node.gid}
            if node.kind in ("c", "b"):
                entry |= {"major": node.major, "minor": node.minor}
            if path in self._opened:
                entry["open"] = self._opened[path]
            yield path, entry

    def _commands(self) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """What programs said; docker's and podman's own descriptions by the keys that the schema has for them."""
        commands: list[dict[str, Any]] = []
        engines: dict[str, dict[str, Any]] = {}
        for argv, done in self._said.items():
            if done.missing:
                continue
            program, key = key_of(argv)
            described = _object(done.stdout) if key and done.rc == 0 and not done.timed_out else None
            if described:
                engines.setdefault(program, {})[key] = described
                continue
            entry = {"argv": list(argv), "rc": done.rc, "stdout": done.stdout, "stderr": done.stderr}
            commands.append({**entry, "timed_out": True} if done.timed_out else entry)
        return commands, engines


class _NotedEnv(Mapping[str, str]):
    """Notes what was looked up and is there. Going through it shows only variables that may be taken along."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.noted: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        value = self._env[name]
        if not is_secret(name):
            self.noted[name] = value
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._env if is_device_variable(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
