"""What pods hold of a node, as the scheduler counts it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from selfhost.hosts.cluster import list_of, map_of
from selfhost.hosts.cluster_quantity import quantity

Object = Mapping[str, Any]
_ENDED = ("Succeeded", "Failed")


def requested(pods: Sequence[Object]) -> dict[str, dict[str, Decimal]]:
    """By node and resource, of pods that are bound to one and have not ended."""
    found: dict[str, dict[str, Decimal]] = {}
    for pod in pods:
        node = str(map_of(pod.get("spec")).get("nodeName") or "")
        if node and map_of(pod.get("status")).get("phase") not in _ENDED:
            held = found.setdefault(node, {})
            for resource, amount in of_pod(pod).items():
                held[resource] = held.get(resource, Decimal(0)) + amount
    return found


def of_pod(pod: Object) -> dict[str, Decimal]:
    """The larger of what its containers need together, and what one of its init containers needs."""
    spec = map_of(pod.get("spec"))
    inits = [one for one in list_of(spec.get("initContainers")) if isinstance(one, Mapping)]
    lasting = [one for one in inits if one.get("restartPolicy") == "Always"]
    total: dict[str, Decimal] = {}
    for container in (*list_of(spec.get("containers")), *lasting):
        for resource, amount in _of_container(container):
            total[resource] = total.get(resource, Decimal(0)) + amount
    for container in inits:
        for resource, amount in _of_container(container) if container not in lasting else ():
            total[resource] = max(total.get(resource, Decimal(0)), amount)
    for resource, amount in _amounts(spec.get("overhead")):
        total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def _of_container(container: object) -> Iterator[tuple[str, Decimal]]:
    """A limit without a request is one (API reference, ResourceRequirements)."""
    resources = map_of(map_of(container).get("resources"))
    yield from {**dict(_amounts(resources.get("limits"))), **dict(_amounts(resources.get("requests")))}.items()


def _amounts(found: object) -> Iterator[tuple[str, Decimal]]:
    for resource, text in map_of(found).items():
        amount = quantity(text)
        if amount is not None:
            yield resource, amount
