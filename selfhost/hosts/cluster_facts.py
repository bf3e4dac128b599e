"""What objects of a cluster say: nodes in groups of equal cards, what is free of them, and what is there beside. Pure.

Objects are those of the API, from `kubectl get -o json`, a snapshot or a client.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from selfhost.core.versions import numbers
from selfhost.hosts import cluster
from selfhost.hosts.cluster_cards import CardKind, cards_of
from selfhost.hosts.cluster_claims import Slice, classes_of, slices_of
from selfhost.hosts.cluster_quantity import quantity, whole
from selfhost.hosts.cluster_requests import requested
from selfhost.shapes.workload import Toleration

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """One node. `free` is what pods have not asked for; amounts of memory in bytes, of cpu in cores."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Toleration, ...]
    """Each with the key, value and effect of one taint."""
    allocatable: Mapping[str, Decimal]
    free: Mapping[str, Decimal]
    ready: bool
    cordoned: bool
    object: Object = field(repr=False)

    @property
    def usable(self) -> bool:
        return self.ready and not self.cordoned


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes whose cards are alike, for one resource. `kind` is that of the card, the slice or the share."""

    kind: CardKind
    nodes: tuple[NodeSeen, ...]
    slices: tuple[Slice, ...] = ()
    """Devices of resource slices, where they are handed out by claims."""

    @property
    def by_claim(self) -> bool:
        return bool(self.slices)

    @property
    def key(self) -> str:
        return f"cluster:{self.kind.resource}:{self.kind.name or 'card'}:{self.kind.memory_mib}"

    def count(self, node: NodeSeen) -> int:
        """Of one node, held or not."""
        if self.by_claim:
            return sum(one.node in ("", node.name) for one in self.slices)
        return int(node.allocatable.get(self.kind.resource, 0))

    def free(self, node: NodeSeen) -> int:
        if not node.usable:
            return 0
        if self.by_claim:
            return sum(one.node in ("", node.name) and not one.held for one in self.slices)
        return max(0, int(node.free.get(self.kind.resource, 0)))

    @property
    def total(self) -> int:
        return sum(map(self.count, self.nodes))

    @property
    def total_free(self) -> int:
        return sum(map(self.free, self.nodes))

    @property
    def best(self) -> NodeSeen:
        """The node with the most free cards, and among those with the most memory."""
        return max(self.nodes, key=lambda node: (self.free(node), self.count(node), node.free.get("memory", 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """`kinds` are the kinds of objects that were read: one that is missing was not asked for, or is forbidden."""

    nodes: tuple[NodeSeen, ...]
    groups: tuple[Group, ...]
    objects: tuple[Object, ...] = field(repr=False)
    kinds: frozenset[str]

    def named(self, kind: str) -> tuple[str, ...]:
        return tuple(cluster.name(one) for one in self.of(kind))

    def of(self, kind: str) -> tuple[Object, ...]:
        return tuple(one for one in self.objects if one.get("kind") == kind)

    def group(self, key: str) -> Group | None:
        return next((group for group in self.groups if group.key == key), None)


def facts_of(objects: Iterable[Object]) -> ClusterFacts:
    """Of objects of every kind, lists of them among them."""
    flat = cluster.flat(tuple(objects))
    others = tuple(one for one in flat if one.get("kind") != "Node")
    held = requested([one for one in others if one.get("kind") == "Pod"])
    nodes = tuple(_node(one, held) for one in flat if one.get("kind") == "Node")
    return ClusterFacts(
        nodes=nodes,
        groups=tuple(_groups(nodes, others)),
        objects=others,
        kinds=frozenset(str(one.get("kind")) for one in flat),
    )


def _node(one: Object, held: Mapping[str, Mapping[str, Decimal]]) -> NodeSeen:
    status = cluster.map_of(one.get("status"))
    found = {str(key): quantity(value) for key, value in cluster.map_of(status.get("allocatable")).items()}
    allocatable = {key: amount for key, amount in found.items() if amount is not None}
    name = cluster.name(one)
    taken = held.get(name, {})
    conditions = status.get("conditions")
    return NodeSeen(
        name=name,
        labels=cluster.labels(one),
        taints=tuple(_toleration(taint) for taint in cluster.taints(one)),
        allocatable=allocatable,
        free={key: amount - taken.get(key, Decimal(0)) for key, amount in allocatable.items()},
        ready=_ready(conditions if isinstance(conditions, list) else ()),
        cordoned=bool(cluster.map_of(one.get("spec")).get("unschedulable")),
        object=one,
    )


def _ready(conditions: Sequence[Any]) -> bool:
    """A node that says nothing of it was written by hand, and counts."""
    said = [cluster.map_of(one).get("status") for one in conditions if cluster.map_of(one).get("type") == "Ready"]
    return not said or said[0] == "True"


def _toleration(taint: Object) -> Toleration:
    said = {key: str(taint.get(key) or "") for key in ("key", "value", "effect")}
    return Toleration(operator="Exists", **said)


def _groups(nodes: Sequence[NodeSeen], others: Sequence[Object]) -> list[Group]:
    found: dict[CardKind, list[tuple[NodeSeen, str]]] = {}
    for node in nodes:
        for kind in cards_of(node.labels, {key: whole(amount) for key, amount in node.allocatable.items()}):
            found.setdefault(replace(kind, driver=""), []).append((node, kind.driver))
    plugged = [_plugged(kind, held) for kind, held in found.items()]
    vendors = {group.kind.vendor for group in plugged if group.total}
    claimed: dict[CardKind, list[Slice]] = {}
    for one in slices_of(others):
        if one.kind.resource in classes_of(others) and one.kind.vendor not in vendors:
            claimed.setdefault(one.kind, []).append(one)
    by_claim = [
        Group(kind=kind, slices=tuple(held), nodes=tuple(node for node in nodes if _on(node, held)))
        for kind, held in claimed.items()
    ]
    return [*plugged, *(group for group in by_claim if group.nodes)]


def _plugged(kind: CardKind, held: Sequence[tuple[NodeSeen, str]]) -> Group:
    """With the oldest of the drivers: the pod may come to any of the nodes."""
    drivers = [driver for _, driver in held if driver]
    oldest = min(drivers, key=numbers, default="")
    return Group(kind=replace(kind, driver=oldest), nodes=tuple(node for node, _ in held))


def _on(node: NodeSeen, held: Sequence[Slice]) -> bool:
    return any(one.node in ("", node.name) for one in held)
