"""Objects of a namespace as they change: listed, then watched; a watch that breaks is taken up again, with patience."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed
from selfhost.runtimes.cluster.client import Cluster

Object = dict[str, Any]
FIRST_S = 0.5
MOST_S = 15.0
"""Waits between tries double from the first to the most."""
WATCH_S = 240
"""The server ends a watch after so long; asked for, so that a proxy in between does not do it first."""
SILENCE_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is watched: `selector` as a label selector."""

    api_version: str
    kind: str
    selector: str = ""


@dataclass(slots=True)
class _Seen:
    """What one thread knows."""

    objects: dict[str, Object] = field(default_factory=dict)
    listed: bool = False
    lost_since: float | None = None
    trouble: str = ""
    refused: Exception | None = None


class Watch:
    """Several kinds at once, a thread each. Use as a context manager; threads end with it."""

    def __init__(self, cluster: Cluster, kinds: Sequence[Kind]) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._seen = {kind: _Seen() for kind in kinds}
        self._threads = [
            threading.Thread(target=self._follow, args=(kind,), name=f"watch {kind.kind}", daemon=True)
            for kind in kinds
        ]

    def __enter__(self) -> Self:
        _ = self._cluster.api  # made once, before threads share it
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()

    def objects(self) -> tuple[Object, ...]:
        with self._lock:
            return tuple(one for seen in self._seen.values() for one in seen.objects.values())

    @property
    def complete(self) -> bool:
        """Every kind was listed once, or may not be."""
        with self._lock:
            return all(seen.listed or seen.refused for seen in self._seen.values())

    def lost(self) -> tuple[float, str]:
        """For how many seconds nothing was heard of the worst-off kind, and why; (0, "") while all is well."""
        now = time.monotonic()
        with self._lock:
            worst = [
                (now - seen.lost_since, seen.trouble) for seen in self._seen.values() if seen.lost_since is not None
            ]
        return max(worst, default=(0.0, ""))

    def refused(self) -> Mapping[Kind, Exception]:
        """Kinds that this account may not see, or that the server does not know."""
        with self._lock:
            return {kind: seen.refused for kind, seen in self._seen.items() if seen.refused is not None}

    def _follow(self, kind: Kind) -> None:
        seen, version, wait_s = self._seen[kind], "", FIRST_S
        while not self._end.is_set():
            try:
                if not version:
                    version = self._list(kind, seen)
                version = self._watch(kind, seen, version)
                wait_s = FIRST_S
            except NotServed as error:
                self._note(seen, refused=error)
                return
            except ApiError as error:
                if error.status in (401, 403, 405):
                    self._note(seen, refused=error)
                    return
                version = "" if error.status == 410 else version
                self._note(seen, trouble=str(error))
            except NoAnswer as error:
                if error.kind != "timeout" or not seen.listed:
                    self._note(seen, trouble=error.why)
            if self._end.wait(wait_s):
                return
            wait_s = min(wait_s * 2, MOST_S)

    def _note(self, seen: _Seen, *, trouble: str = "", refused: Exception | None = None) -> None:
        with self._lock:
            seen.trouble, seen.refused = trouble, refused
            if trouble:
                seen.lost_since = time.monotonic() if seen.lost_since is None else seen.lost_since

    def _heard(self, seen: _Seen) -> None:
        seen.lost_since, seen.trouble = None, ""

    def _list(self, kind: Kind, seen: _Seen) -> str:
        path = self._cluster.resource(kind.api_version, kind.kind).path(self._cluster.namespace)
        query = {"labelSelector": kind.selector or None}
        page = self._cluster.get(path, **query)
        found = {
            _key(one): {"apiVersion": kind.api_version, "kind": kind.kind, **one} for one in page.get("items") or ()
        }
        with self._lock:
            seen.objects, seen.listed = found, True
            self._heard(seen)
        return str((page.get("metadata") or {}).get("resourceVersion") or "")

    def _watch(self, kind: Kind, seen: _Seen, version: str) -> str:
        """Until the server ends it; returns the version to go on from, empty where all must be listed again."""
        path = self._cluster.resource(kind.api_version, kind.kind).path(self._cluster.namespace)
        query: dict[str, Any] = {
            "watch": True,
            "resourceVersion": version,
            "timeoutSeconds": WATCH_S,
            "allowWatchBookmarks": True,
            "labelSelector": kind.selector or None,
        }

        def opened() -> None:
            with self._lock:
                self._heard(seen)

        for line in self._cluster.lines(path, timeout_s=SILENCE_S, opened=opened, **query):
            if self._end.is_set():
                return version
            event = _event(line)
            one, what = event.get("object") or {}, event.get("type")
            if what == "ERROR":
                return ""  # 410 Gone, almost always: the version is too old
            version = str((one.get("metadata") or {}).get("resourceVersion") or version)
            with self._lock:
                if what == "DELETED":
                    seen.objects.pop(_key(one), None)
                elif what in ("ADDED", "MODIFIED"):
                    seen.objects[_key(one)] = {"apiVersion": kind.api_version, "kind": kind.kind, **one}
        return version


def _key(one: Mapping[str, Any]) -> str:
    return str((one.get("metadata") or {}).get("name"))


def _event(line: str) -> Object:
    """A line that a closing connection cut short counts as none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
