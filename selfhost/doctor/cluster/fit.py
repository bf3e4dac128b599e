"""Node by node, why one pod does not fit there, and which node comes closest. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Final

from selfhost.doctor.cluster.devices import bridged, devices
from selfhost.doctor.cluster.holders import allocatable, capacity, held
from selfhost.doctor.cluster.pod import SHARES, asked, is_card
from selfhost.doctor.cluster.selectors import Mismatch, kept_away, of_affinity, of_selector, of_terms
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, condition, label, labels, name, part, text
from selfhost.doctor.cluster.volumes import volume_of
from selfhost.doctor.cluster.wishes import unmet, wishes

_CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_OWN_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
ROOM: Final = ("cpu", "memory", "ephemeral-storage", "pods")
_WEIGHT: Final = {"absent": 1000, "unclaimable": 1000, "many": 100, "unhealthy": 50}
"""A node without the cards is no candidate, however little else it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One reason.

    `kind`: absent, unclaimable, many, held, unhealthy, room, taint, label, number, volume, cordoned, unready.
    """

    kind: str
    key: str
    """The resource, the label, the taint."""
    text: str
    asked: Decimal = Decimal(0)
    free: Decimal = Decimal(0)
    has: Decimal = Decimal(0)
    mismatch: Mismatch | None = None
    taint: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One node. Without misses the pod fits there."""

    node: Object
    misses: tuple[Miss, ...]

    @property
    def name(self) -> str:
        return name(self.node)

    cost: int
    """How far it is from fitting."""

    def of(self, *kinds: str) -> tuple[Miss, ...]:
        return tuple(one for one in self.misses if one.kind in kinds)

    def has(self, *kinds: str) -> bool:
        return any(one.kind in kinds for one in self.misses)

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(one.text for one in self.misses) or 'fits'}"


def fits(cluster: Cluster, pod: Object) -> tuple[Fit, ...]:
    """The closest first."""
    owner = cluster.owner(pod)
    same = owner if owner is not None and text(owner, "kind") in ("ReplicaSet", "Job") else pod
    return cluster.once(("fits", label(same)), lambda: _fits(cluster, pod))


def _fits(cluster: Cluster, pod: Object) -> tuple[Fit, ...]:
    wanted = {**asked(pod), "pods": Decimal(1)}
    found = [_fit(node, tuple(_misses(cluster, pod, wanted, node))) for node in cluster.of("Node")]
    return tuple(sorted(found, key=lambda one: (one.cost, one.name)))


def _fit(node: Object, misses: tuple[Miss, ...]) -> Fit:
    control = any(key in labels(node) for key in _CONTROL_PLANE)
    cost = sum(_WEIGHT.get(one.kind, 1) for one in misses) + (10 if control and misses else 0)
    return Fit(node=node, misses=misses, cost=cost)


def _misses(cluster: Cluster, pod: Object, asked_for: Mapping[str, Decimal], node: Object) -> Iterator[Miss]:
    yield from _resources(cluster, asked_for, node)
    yield from _barred(pod, node)
    yield from _claims(cluster, pod, node)
    wanted = (*of_selector(pod, labels(node)), *of_affinity(pod, labels(node), name(node)))
    for one in wanted:
        yield Miss(kind="number" if one.number else "label", key=one.key, text=f"wants {one}", mismatch=one)
    for claimed, claim in cluster.claims_of(pod):
        volume = volume_of(cluster, claim)
        lacking = volume_misses(volume, node) if volume is not None else ()
        for one in lacking[:1]:
            yield Miss(kind="volume", key=claimed, text=f"the volume of {claimed} wants {one}", mismatch=one)


def _claims(cluster: Cluster, pod: Object, node: Object) -> Iterator[Miss]:
    """Too few devices on the node that meet a claim, held or not."""
    every = cluster.once("devices", lambda: tuple(devices(cluster)))
    for wish in wishes(cluster, pod) if every else ():
        here = [one for one in every if one.node in ("", name(node))]
        lacking = [tuple(unmet(wish, one)) for one in here]
        meet = sum(not found or any(lack.unknown for lack in found) for found in lacking)
        if meet < wish.count and not wish.open:
            said = f"{meet} of {wish.count} devices of {wish.device_class} that meet the claim"
            yield Miss(kind="unclaimable", key=wish.device_class, text=f"has {said}")


def volume_misses(volume: Object, node: Object) -> tuple[Mismatch, ...]:
    return of_terms(part(volume, "spec", "nodeAffinity", "required"), labels(node), name(node))


def _resources(cluster: Cluster, wanted: Mapping[str, Decimal], node: Object) -> Iterator[Miss]:
    offered, sold = cluster.once(("amounts", name(node)), lambda: (allocatable(node), capacity(node)))
    taken = held(cluster, name(node))
    for resource, amount in wanted.items():
        if resource not in offered and (resource in ROOM or resource.startswith(SHARES) or bridged(cluster, resource)):
            continue
        has = offered.get(resource, Decimal(0))
        free = has - taken.get(resource, Decimal(0))
        if free >= amount:
            continue
        if resource in ROOM:
            yield Miss(
                kind="room", key=resource, text=_room(resource, amount, has, free), asked=amount, free=free, has=has
            )
            continue
        kind = _why(has, sold.get(resource, Decimal(0)), amount)
        said = {
            "absent": f"has no {resource}",
            "unhealthy": f"has {sold.get(resource, 0)} {resource}, none of them healthy",
            "many": f"has {has} {resource}, {amount} asked",
            "held": f"{max(free, Decimal(0))} of {has} {resource} free, {amount} asked",
        }[kind]
        yield Miss(kind=kind, key=resource, text=said, asked=amount, free=max(free, Decimal(0)), has=has)


def _why(has: Decimal, sold: Decimal, amount: Decimal) -> str:
    if not has:
        return "unhealthy" if sold else "absent"
    return "many" if has < amount else "held"


def _room(resource: str, amount: Decimal, has: Decimal, free: Decimal) -> str:
    said = readable(resource, amount), readable(resource, max(free, Decimal(0))), readable(resource, has)
    return f"{said[0]} {resource} asked, {said[1]} free of {said[2]} allocatable"


def readable(resource: str, amount: Decimal) -> str:
    if resource == "cpu":
        return f"{amount.normalize():f}"
    if resource in ("memory", "ephemeral-storage"):
        for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi")):
            if amount >= Decimal(1024) ** power:
                return f"{(amount / Decimal(1024) ** power).quantize(Decimal('0.1')).normalize():f}{unit}"
    return f"{amount.to_integral_value():f}"


def _barred(pod: Object, node: Object) -> Iterator[Miss]:
    cordoned = bool(node.get("spec", {}).get("unschedulable")) if isinstance(node.get("spec"), dict) else False
    ready = text(condition(node, "Ready"), "status")
    if cordoned:
        yield Miss(kind="cordoned", key="unschedulable", text="is cordoned")
    if ready in ("False", "Unknown"):
        said = text(condition(node, "Ready"), "message") or text(condition(node, "Ready"), "reason")
        yield Miss(kind="unready", key="Ready", text=f"is not ready: {said or ready}")
    for key, value, effect in kept_away(pod, node):
        if key.startswith(_OWN_TAINTS) and (cordoned or ready in ("False", "Unknown")):
            continue
        shown = f"{key}{f'={value}' if value else ''}:{effect}"
        yield Miss(kind="taint", key=key, text=f"taint {shown} not tolerated", taint=(key, value, effect))


def closest(found: tuple[Fit, ...]) -> tuple[Fit, ...]:
    """Every node that is as close as the closest, of fits in order."""
    least = found[0].cost if found else 0
    return tuple(takewhile(lambda one: one.cost == least, found))


def cards_wanted(pod: Object) -> dict[str, Decimal]:
    return {resource: amount for resource, amount in asked(pod).items() if is_card(resource) or _is_device(resource)}


def _is_device(resource: str) -> bool:
    """Any extended resource: a name with a domain that is none of Kubernetes' own."""
    return "/" in resource and not resource.startswith(("kubernetes.io/", "hugepages-"))
