"""What a pod claims of devices: class, number, and the expressions that each must meet. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.doctor.cluster.cel import Lack, lacks
from selfhost.doctor.cluster.devices import Device
from selfhost.doctor.cluster.holders import allocatable
from selfhost.doctor.cluster.pod import asked_cards
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, name, namespace, number, part, rows, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One request of a claim: so many devices of a class, each meeting all expressions."""

    device_class: str
    count: int
    expressions: tuple[str, ...]
    open: bool = False
    """It has alternatives, or asks for all there are: whether it can be met is beyond us."""


def wishes(cluster: Cluster, pod: Object) -> Iterator[Wish]:
    yield from _bridged(cluster, pod)
    for reference in rows(pod, "spec", "resourceClaims"):
        for one in rows(_claim_spec(cluster, pod, reference), "devices", "requests"):
            choices = rows(one, "firstAvailable") or (part(one, "exactly") or one,)
            body = choices[0]
            klass = text(body, "deviceClassName")
            own = cluster.get("DeviceClass", "", klass) or {}
            selectors = (*rows(own, "spec", "selectors"), *rows(body, "selectors"))
            yield Wish(
                device_class=klass,
                count=number(body, "count", default=1),
                expressions=tuple(text(each, "cel", "expression") for each in selectors),
                open=len(choices) > 1 or text(body, "allocationMode") == "All",
            )


def _bridged(cluster: Cluster, pod: Object) -> Iterator[Wish]:
    """Resources that a device class serves, where no node's plugin does."""
    for resource, count in asked_cards(pod).items():
        for one in cluster.of("DeviceClass") if not _plugged(cluster, resource) else ():
            if text(one, "spec", "extendedResourceName") == resource:
                yield Wish(
                    device_class=name(one), count=count,
                    expressions=tuple(text(each, "cel", "expression") for each in rows(one, "spec", "selectors")),
                )  # fmt: skip


def _plugged(cluster: Cluster, resource: str) -> bool:
    return any(allocatable(node).get(resource) for node in cluster.of("Node"))


def _claim_spec(cluster: Cluster, pod: Object, reference: Object) -> Object:
    template = text(reference, "resourceClaimTemplateName") or text(reference, "source", "resourceClaimTemplateName")
    if template:
        found = cluster.get("ResourceClaimTemplate", namespace(pod), template)
        if found is not None:
            return part(found, "spec", "spec")
    made = text(reference, "resourceClaimName") or _made(pod, text(reference, "name"))
    return part(cluster.get("ResourceClaim", namespace(pod), made), "spec")


def _made(pod: Object, called: str) -> str:
    """The claim that was made from a template for this pod."""
    statuses = rows(pod, "status", "resourceClaimStatuses")
    return next((text(one, "resourceClaimName") for one in statuses if text(one, "name") == called), "")


def unmet(wish: Wish, device: Device) -> Iterator[Lack]:
    """Why a device is none for it."""
    for one in wish.expressions:
        yield from lacks(one, device)
    if device.tainted:
        yield Lack(term="no taint", actual="one")
