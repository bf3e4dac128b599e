"""A pod against the nodes of a cluster that was looked at: labels, cards, processor and memory."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from selfhost.core.tree import Tree
from selfhost.hosts.cluster import labels, name
from selfhost.hosts.cluster_quantity import quantity
from selfhost.hosts.cluster_requests import of_pod
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility import cluster
from selfhost.visibility.objects import CARDS, Manifests, Pod, label
from selfhost.visibility.rule import Found, manifest_rule

ASSIGN = "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/"
AMOUNTS = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/"
_GROWING: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
"""Labels of nodes that an autoscaler may add more of."""
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_SHARES: Final = ("nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/priority")
"""HAMi's parts of a card: its own scheduler counts them, and no node advertises them."""
_PENDING: Final = "The API server takes it, and the pod stays Pending"


@manifest_rule("KX074", Severity.ERROR, source=ASSIGN)
def no_node_has_the_labels(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    for pod in _asking(manifests, host):
        nodes = [node for node in cluster.nodes(host) if labels(node)]  # a real one has its host's name at least
        if not nodes or _matching(pod, nodes):
            continue
        for tree, key, wanted, operator, values in _wants(pod):
            if any(_meets(labels(node), key, operator, values) for node in nodes):
                continue
            have = sorted({labels(node)[key] for node in nodes if key in labels(node)})
            yield Found(
                title=f"no node of the cluster meets {wanted}, which {label(pod.holder)} wants",
                place=pod.place(tree),
                evidence=f"{key}: {', '.join(have[:6])}" if have else f"no node has a label {key}",
                why=f"{_PENDING}: `node(s) didn't match Pod's node affinity/selector`.",
                fix=(f"take a value that a node has:\nkubectl get nodes -L {key}",),
                severity=_severity(nodes),
            )


@manifest_rule("KX075", Severity.ERROR, source=AMOUNTS)
def more_than_a_node_has(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    bridged = {str(cluster.at(one, "spec", "extendedResourceName")) for one in cluster.objects(host, "DeviceClass")}
    for pod in _asking(manifests, host):
        nodes = _matching(pod, cluster.nodes(host))
        asked = of_pod({"spec": pod.spec.data})
        for resource in sorted(asked, key=lambda one: not one.startswith(CARDS)):
            count = asked[resource]
            if not nodes or not count or resource in bridged or not _counted(resource):
                continue
            room = {name(node): _room(node, resource) for node in nodes}
            most = max(room.values())
            if count > most:
                yield _too_much(pod, resource, count, max(room, key=lambda one: room[one]), most, nodes)
                break
            nodes = [node for node in nodes if room[name(node)] >= count]


def _too_much(pod: Pod, resource: str, count: Decimal, node: str, most: Decimal, nodes: Sequence[Any]) -> Found:
    return Found(
        title=f"{label(pod.holder)} asks for {_shown(count, resource)} {resource}; "
        + (f"the most that one node has is {_shown(most, resource)}" if most else "no node advertises it"),
        place=pod.place(_said(pod, resource)),
        evidence=f"{node}: {_shown(most, resource)} {resource} allocatable",
        why=f"{_PENDING}: `Insufficient {resource}`. All that one pod asks for must be free on one node.",
        fix=(
            (
                "ask for no more than a node can give, or for cards by the name that the nodes have:\n"
                "kubectl get nodes -o custom-columns=NAME:.metadata.name,ALLOCATABLE:.status.allocatable"
            ),
        ),
        severity=_severity(nodes) if resource.startswith(CARDS) else Severity.WARNING,
    )


def _asking(manifests: Manifests, host: Host | None) -> Iterator[Pod]:
    """Whole pods for the scheduler; a pod for every node is placed by another."""
    for pod in manifests.pods if cluster.nodes(host) else ():
        if pod.whole and pod.kind != "DaemonSet" and not pod.spec.said("nodeName"):
            yield pod


def _severity(nodes: Sequence[Any]) -> Severity | None:
    grows = any(key in labels(node) for node in nodes for key in _GROWING)
    return Severity.WARNING if grows else None


def _counted(resource: str) -> bool:
    return resource in _NATIVE or (resource.startswith(CARDS) and not resource.startswith(_SHARES))


def _room(node: Mapping[str, object], resource: str) -> Decimal:
    """Of cards none, where a node names none; of what every node has, no end where it was left out."""
    said = cluster.allocatable(node)
    if not said or (resource in _NATIVE and resource not in said):
        return Decimal("Infinity")
    return quantity(said.get(resource, "0")) or Decimal(0)


def _shown(amount: Decimal, resource: str) -> str:
    if resource in ("memory", "ephemeral-storage"):
        return f"{float(amount) / 2**30:.4g}Gi"
    return f"{amount.normalize():f}"


def _said(pod: Pod, resource: str) -> Tree | None:
    for container in pod.containers:
        for kind in ("limits", "requests"):
            found = container.tree.at("resources", kind, resource)
            if found is not None:
                return found
    return None


Want = tuple[Tree, str, str, str, list[str]]
"""Where it stands, the label, how it is said, the operator and its values."""


def _wants(pod: Pod) -> Iterator[Want]:
    selector = pod.spec.at("nodeSelector")
    for key, value in selector.items() if selector is not None else ():
        yield value, key, f"{key}={value.text}", "In", [value.text]
    for term in _terms(pod):
        yield from _expressions(term)


def _terms(pod: Pod) -> list[Tree]:
    found = pod.spec.at(
        "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    return list(found.elements()) if found is not None else []


def _expressions(term: Tree) -> Iterator[Want]:
    listed = term.at("matchExpressions")
    for each in listed.elements() if listed is not None else ():
        key, operator, values = each.said("key"), each.said("operator"), each.at("values")
        texts = [value.text for value in values.elements()] if values is not None else []
        yield each, key, f"{key} {operator} {', '.join(texts)}".strip(), operator, texts


def _matching(pod: Pod, nodes: Sequence[Any]) -> list[Any]:
    """Nodes whose labels the selector and one of the terms take; templates' words match all."""
    selector = pod.spec.at("nodeSelector")
    own = {key: value.text for key, value in selector.items()} if selector is not None else {}
    terms = [list(_expressions(term)) for term in _terms(pod)]
    return [
        node
        for node in nodes
        if all(_meets(labels(node), key, "In", [value]) for key, value in own.items())
        and (
            not terms
            or any(all(_meets(labels(node), key, how, texts) for _, key, _, how, texts in term) for term in terms)
        )
    ]


def _meets(own: Mapping[str, str], key: str, operator: str, values: Sequence[str]) -> bool:
    value = own.get(key)
    if any("$" in each or "{{" in each for each in values):
        return True
    if operator in ("Gt", "Lt"):
        return _compares(value, operator, values)
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(operator, True)


def _compares(value: str | None, operator: str, values: Sequence[str]) -> bool:
    """What is compared with no number is said by the rule for comparisons."""
    if len(values) != 1 or not values[0].isdecimal():
        return True
    if value is None or not value.isdecimal():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
