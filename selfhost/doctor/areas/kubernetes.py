"""Cards that a cluster hands out: whether it sees them, and whether something else takes them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from selfhost.doctor.area import Seen, area
from selfhost.hosts import cluster
from selfhost.shapes.finding import Finding, Place, RunOn, Severity

_RESOURCES: Final = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
_LABELS: Final = {
    "feature.node.kubernetes.io/pci-10de.present": "nvidia.com/",
    "feature.node.kubernetes.io/pci-1002.present": "amd.com/",
}
_SOURCE: Final = "https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/"


@area("kubernetes", order=100)
def kubernetes(seen: Seen) -> None:
    nodes = cast("tuple[Mapping[str, Any], ...]", seen.host.surroundings.nodes if seen.host.surroundings else ())
    if not nodes:
        seen.calm = "" if "pod" in seen.labels else "not part of a cluster, as far as this machine shows"
        if not seen.calm:
            seen.unknowns.append("the cluster's nodes cannot be read from inside this pod")
        return
    for node in nodes:
        seen.findings.extend(_unseen(node))
        seen.findings.extend(_unhealthy(node))
    seen.findings.extend(_shared(seen, nodes))
    given: Counter[str] = Counter()
    for node in nodes:
        given.update(_cards(node, "allocatable"))
    seen.calm = ", ".join(f"{count} {name}" for name, count in given.items()) or "no node offers a card"


def _name(node: Mapping[str, Any]) -> str:
    return cluster.name(node) or "?"


def _cards(node: Mapping[str, Any], key: str) -> dict[str, int]:
    status = node.get("status")
    listed = status.get(key) if isinstance(status, Mapping) else None
    found = {name: cluster.whole(count) for name, count in (listed if isinstance(listed, Mapping) else {}).items()}
    return {name: count for name, count in found.items() if name.startswith(_RESOURCES) and count is not None}


def _unseen(node: Mapping[str, Any]) -> Iterator[Finding]:
    labels = cluster.labels(node)
    for label, prefix in _LABELS.items():
        if labels.get(label) == "true" and not any(name.startswith(prefix) for name in _cards(node, "capacity")):
            yield Finding(
                id="HX302",
                severity=Severity.ERROR,
                title=f"node {_name(node)} has a card that the cluster does not offer",
                place=Place(object=f"node {_name(node)}"),
                evidence=f"{label}=true; no {prefix}… in status.capacity",
                why="Layer: scheduler. Node feature discovery saw the card; no device plugin registered it.",
                fix=("see whether the device plugin runs there:\nkubectl get pods -A -o wide | grep -i plugin",),
                run_on=RunOn.CLUSTER_ADMIN,
                source=_SOURCE,
            )


def _unhealthy(node: Mapping[str, Any]) -> Iterator[Finding]:
    allocatable = _cards(node, "allocatable")
    for name, count in _cards(node, "capacity").items():
        if allocatable.get(name, 0) < count:
            yield Finding(
                id="HX303",
                severity=Severity.WARNING,
                title=f"node {_name(node)} offers {allocatable.get(name, 0)} of {count} {name}",
                place=Place(object=f"node {_name(node)}"),
                evidence=f"capacity {count}, allocatable {allocatable.get(name, 0)}",
                why="Layer: scheduler. The device plugin reports the others as unhealthy.",
                fix=(f"read what it says of them:\nkubectl describe node {_name(node)}",),
                run_on=RunOn.CLUSTER_ADMIN,
                source=_SOURCE,
            )


def _shared(seen: Seen, nodes: tuple[Mapping[str, Any], ...]) -> Iterator[Finding]:
    if not any(count for node in nodes for count in _cards(node, "allocatable").values()):
        return
    for card in seen.host.accelerators:
        outside = [tenant for tenant in card.tenants if tenant.pid in seen.look.outsiders]
        if outside:
            yield Finding(
                id="HX304",
                severity=Severity.WARNING,
                title=f"Kubernetes hands out {card.name}, and something outside it uses it",
                place=Place(object=f"accelerator {card.index}"),
                evidence="\n".join(f"{one.pid} {one.name}: {seen.look.outsiders[one.pid]}" for one in outside),
                why="Layer: scheduler. It counts this card as free: a pod that gets it finds its memory taken.",
                fix=("end that process, run it as a pod, or keep the card from the cluster's device plugin",),
                run_on=RunOn.CLUSTER_ADMIN,
                source=_SOURCE,
            )
