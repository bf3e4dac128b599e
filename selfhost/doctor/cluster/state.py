"""The objects of a cluster, found by kind, name and owner; and what was said of each in events."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from selfhost.doctor.cluster.tree import Object, at, label, labels, name, namespace, number, rows, text
from selfhost.hosts.cluster import flat

_GENERATED: Final = re.compile(r"-[0-9a-z]{5}\Z")
_TEMPLATED: Final = re.compile(r"-[0-9a-z]{6,10}-[0-9a-z]{5}\Z")

Made = TypeVar("Made")


class Cluster:
    """`unread` are kinds that could not be read, each with its reason: what they would say is unknown.

    `kubectl` begins every command to paste, the context of the cluster in it.
    """

    def __init__(
        self, objects: Iterable[Object], *, unread: Mapping[str, str] | None = None, kubectl: str = "kubectl"
    ) -> None:
        self.objects: tuple[Object, ...] = tuple(flat(tuple(objects)))
        self.unread = dict(unread or {})
        self.kubectl = kubectl
        self._kinds: dict[str, list[Object]] = {}
        self._named: dict[tuple[str, str, str], Object] = {}
        one: Object
        for one in self.objects:
            kind = text(one, "kind")
            self._kinds.setdefault(kind, []).append(one)
            self._named.setdefault((kind, namespace(one), name(one)), one)
        self._said: dict[tuple[str, str, str], list[Event]] = {}
        for one in self._kinds.get("Event", ()):
            event = Event(one)
            self._said.setdefault(event.about, []).append(event)
        self._made: dict[object, object] = {}
        self._supposed: set[str] = set()
        if not self.unread and not self._kinds.keys() - {"Event", "Node"}:
            self._suppose()
        for said in self._said.values():
            said.sort(key=lambda event: event.when, reverse=True)

    def _suppose(self) -> None:
        """Where hardly more than events was saved, what a warning is about exists, and no more of it is known."""
        for event in self._said_of("Pod", "ReplicaSet", "StatefulSet", "Job", "DaemonSet", "PersistentVolumeClaim"):
            kind, space, called = event.about
            if event.warns and event.about not in self._named:
                one: Object = {"kind": kind, "metadata": {"name": called, "namespace": space}}
                self.objects += (one,)
                self._kinds.setdefault(kind, []).append(one)
                self._named[event.about] = one
                self._supposed.add(kind)

    def _said_of(self, *kinds: str) -> Iterator["Event"]:
        yield from (event for about, said in self._said.items() if about[0] in kinds for event in said)

    def once(self, key: object, make: Callable[[], Made]) -> Made:
        """What several rules ask for, computed once for these objects."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]

    def of(self, kind: str, space: str | None = None) -> tuple[Object, ...]:
        found = self._kinds.get(kind, ())
        return tuple(one for one in found if space is None or namespace(one) == space)

    def get(self, kind: str, space: str, called: str) -> Object | None:
        return self._named.get((kind, space, called))

    def knows(self, kind: str) -> bool:
        """Whether this kind was read at all, so that what is not there does not exist."""
        return kind in self._kinds and kind not in self.unread and kind not in self._supposed

    def in_(self, one: Object) -> str:
        """`kubectl -n team`, for a command about an object."""
        return f"{self.kubectl} -n {namespace(one)}" if namespace(one) else self.kubectl

    def events(self, one: Object) -> tuple["Event", ...]:
        """The newest first."""
        return tuple(self._said.get((text(one, "kind"), namespace(one), name(one)), ()))

    def owner(self, one: Object) -> Object | None:
        """The controller; where a snapshot left it out, by the form of generated names."""
        references = rows(one, "metadata", "ownerReferences")
        for reference in sorted(references, key=lambda found: not found.get("controller")):
            found = self.get(text(reference, "kind"), namespace(one), text(reference, "name"))
            if found is not None:
                return found
        return self._by_name(one)

    def _by_name(self, one: Object) -> Object | None:
        group = labels(one).get("leaderworkerset.sigs.k8s.io/name", "")
        found = self.get("LeaderWorkerSet", namespace(one), group) if group else None
        if found is not None:
            return found if found is not one else None
        kind, called, space = text(one, "kind"), name(one), namespace(one)
        if kind == "ReplicaSet":
            return self.get("Deployment", space, called.rpartition("-")[0])
        if kind != "Pod":
            return None
        if _TEMPLATED.search(called) or _GENERATED.search(called):
            found = self.get("ReplicaSet", space, called.rpartition("-")[0])
            deployment = self.get("Deployment", space, _TEMPLATED.sub("", called))
            return found or deployment or self.get("Job", space, called.rpartition("-")[0])
        return self.get("StatefulSet", space, called.rpartition("-")[0])

    def owners(self, one: Object) -> Iterator[Object]:
        """From the nearest to the outermost."""
        seen: Object | None = self.owner(one)
        for _ in range(6):
            if seen is None:
                return
            yield seen
            seen = self.owner(seen)

    def root(self, one: Object) -> Object:
        return (one, *self.owners(one))[-1]

    def pods_of(self, one: Object) -> tuple[Object, ...]:
        """Pods that an owner made, directly or through another."""
        return tuple(self.once("pods of", self._pods_by_owner).get(label(one), ()))

    def _pods_by_owner(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for pod in self.of("Pod"):
            for owner in self.owners(pod):
                found.setdefault(label(owner), []).append(pod)
        return found

    def sets_of(self, deployment: Object) -> tuple[Object, ...]:
        """Its ReplicaSets."""
        return tuple(self.once("sets of", self._sets_by_owner).get(label(deployment), ()))

    def _sets_by_owner(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for one in self.of("ReplicaSet"):
            owner = self.owner(one)
            if owner is not None:
                found.setdefault(label(owner), []).append(one)
        return found

    def claims_of(self, pod: Object) -> Iterator[tuple[str, Object | None]]:
        """Names of PersistentVolumeClaims that a pod mounts, and the claims where they exist."""
        for volume in rows(pod, "spec", "volumes"):
            claimed = text(volume, "persistentVolumeClaim", "claimName")
            if not claimed and at(volume, "ephemeral") is not None:
                claimed = f"{name(pod)}-{text(volume, 'name')}"
            if claimed:
                yield claimed, self.get("PersistentVolumeClaim", namespace(pod), claimed)

    def users_of(self, claim: Object) -> tuple[Object, ...]:
        return tuple(self.once("users of", self._users_by_claim).get((namespace(claim), name(claim)), ()))

    def _users_by_claim(self) -> dict[tuple[str, str], list[Object]]:
        found: dict[tuple[str, str], list[Object]] = {}
        for pod in self.of("Pod"):
            for called, _ in self.claims_of(pod):
                found.setdefault((namespace(pod), called), []).append(pod)
        return found

    def node_of(self, pod: Object) -> Object | None:
        return self.get("Node", "", text(pod, "spec", "nodeName"))

    def selected(self, space: str, selector: Mapping[str, str]) -> tuple[Object, ...]:
        """Pods whose labels hold all of a plain selector."""
        return tuple(pod for pod in self.of("Pod", space) if selector.items() <= labels(pod).items())


class Event:
    """One event, of `v1` or of `events.k8s.io/v1`."""

    __slots__ = ("about", "container", "count", "message", "reason", "warns", "when")

    def __init__(self, one: Object) -> None:
        subject = at(one, "involvedObject") or at(one, "regarding") or {}
        space = text(subject, "namespace") or (namespace(one) if text(subject, "kind") != "Node" else "")
        if text(subject, "kind") == "Node":
            space = ""
        self.about = (text(subject, "kind"), space, text(subject, "name"))
        self.container = text(subject, "fieldPath").partition("{")[2].rstrip("}")
        self.message = text(one, "message") or text(one, "note")
        self.reason = text(one, "reason")
        self.warns = text(one, "type") == "Warning"
        self.count = number(one, "series", "count") or number(one, "count") or number(one, "deprecatedCount") or 1
        self.when = (
            text(one, "series", "lastObservedTime")
            or text(one, "lastTimestamp")
            or text(one, "deprecatedLastTimestamp")
            or text(one, "eventTime")
            or text(one, "metadata", "creationTimestamp")
        )
