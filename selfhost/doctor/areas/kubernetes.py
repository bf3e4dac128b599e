"""Cards that a cluster hands out: whether it sees them, and whether something else takes them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from selfhost.doctor.area import Area, Seen, area
from selfhost.doctor.cluster.judge import judge
from selfhost.doctor.cluster.pod import healthy, unscheduled
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.targets import chosen, everything
from selfhost.doctor.cluster.tree import counted
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
    around = seen.host.surroundings
    nodes = cast("tuple[Mapping[str, Any], ...]", around.nodes if around else ())
    objects = around.objects if around else ()
    if not nodes and not objects:
        seen.calm = "" if "pod" in seen.labels else "not part of a cluster, as far as this machine shows"
        if not seen.calm:
            seen.unknowns.append("the cluster's nodes cannot be read from inside this pod")
        return
    found = cluster_area(Cluster((*nodes, *objects)))
    seen.findings.extend(found.findings)
    seen.unknowns.extend(found.unknowns)
    seen.findings.extend(_shared(seen, nodes))
    seen.calm = found.calm


def cluster_area(state: Cluster, *, target: str = "", namespace: str = "") -> Area:
    """What is wrong in a cluster: with all of it, with a namespace, or with one object and what belongs to it.

    Raises InputError where there is no such object.
    """
    objects = chosen(state, target, namespace) if target else everything(state, namespace)
    verdict = judge(state, objects)
    nodes = state.of("Node")
    # Nodes explain a pod that none of them takes; they are beside the point of one that runs.
    asked = nodes if not target or any(unscheduled(one) for one in objects if one.get("kind") == "Pod") else ()
    own = [finding for node in asked for finding in (*_unseen(node), *_unhealthy(node))]
    unread = [f"{kind}: {why}" for kind, why in state.unread.items()]
    return Area(
        name="kubernetes",
        calm=_calm(state, objects, target),
        findings=(*verdict.findings, *own),
        unknowns=(*verdict.unknowns, *unread),
        settled=not verdict.unknowns,
    )


def _calm(state: Cluster, objects: Sequence[Mapping[str, Any]], target: str) -> str:
    given: Counter[str] = Counter()
    for node in state.of("Node"):
        given.update(_cards(node, "allocatable"))
    offered = ", ".join(f"{count} {name}" for name, count in given.items()) or "no node offers a card"
    pods = [one for one in objects if one.get("kind") == "Pod"]
    well = sum(healthy(pod) for pod in pods)
    if target:
        return f"{target}: {well} of {counted(len(pods), 'pod')} ready" if pods else f"{target}: no pod"
    if not state.of("Node"):
        offered = "no node was read"
    return f"{offered}; {well} of {counted(len(pods), 'pod')} ready" if pods else offered


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
