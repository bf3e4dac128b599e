"""Who holds the cards of a node, as the scheduler counts it. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from selfhost.doctor.cluster.pod import ended, going
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, name, namespace, rows, text
from selfhost.hosts.cluster_quantity import quantity
from selfhost.hosts.cluster_requests import of_pod, requested


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One pod that counts against a node."""

    pod: Object
    count: int

    @property
    def called(self) -> str:
        return f"{namespace(self.pod)}/{name(self.pod)}"

    def __str__(self) -> str:
        state = ", being deleted" if going(self.pod) else ""
        return f"{self.called} holds {self.count}{state}"


def holders(cluster: Cluster, node: str, resource: str) -> tuple[Holder, ...]:
    """Most first. A pod that has ended holds nothing, whatever it asked for."""
    found = []
    for pod in cluster.of("Pod"):
        if text(pod, "spec", "nodeName") == node and not ended(pod):
            count = int(of_pod(pod).get(resource, 0))
            if count:
                found.append(Holder(pod=pod, count=count))
    return tuple(sorted(found, key=lambda one: (-one.count, one.called)))


def allocatable(node: Object) -> dict[str, Decimal]:
    return _amounts(node, "allocatable")


def capacity(node: Object) -> dict[str, Decimal]:
    return _amounts(node, "capacity")


def _amounts(node: Object, key: str) -> dict[str, Decimal]:
    status = node.get("status")
    listed = status.get(key) if isinstance(status, Mapping) else None
    found = {str(one): quantity(value) for one, value in (listed or {}).items()} if isinstance(listed, Mapping) else {}
    return {one: amount for one, amount in found.items() if amount is not None}


def held(cluster: Cluster, node: str) -> Mapping[str, Decimal]:
    """Everything that pods on a node have asked for; `pods` counts them."""
    return cluster.once("held", lambda: _held(cluster)).get(node, {})


def _held(cluster: Cluster) -> dict[str, dict[str, Decimal]]:
    pods = [pod for pod in cluster.of("Pod") if text(pod, "spec", "nodeName") and not ended(pod)]
    found = requested(pods)
    for node, count in Counter(text(pod, "spec", "nodeName") for pod in pods).items():
        found.setdefault(node, {})["pods"] = Decimal(count)
    return found


def claimed(cluster: Cluster) -> dict[tuple[str, str, str], Object]:
    """Devices of resource slices that are allocated, by driver, pool and device, with the claim that has them."""
    found = {}
    for claim in cluster.of("ResourceClaim"):
        for one in rows(claim, "status", "allocation", "devices", "results"):
            found[text(one, "driver"), text(one, "pool"), text(one, "device")] = claim
    return found
