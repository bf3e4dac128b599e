"""What nodes and objects of a cluster say about a pod, as the API gives them. Pure."""

from collections.abc import Iterator, Mapping
from typing import cast

from selfhost.hosts import cluster
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Toleration, Workload

Json = Mapping[str, object]
_BLOCKING = ("NoSchedule", "NoExecute")


def at(value: object, *keys: str) -> object:
    """A value deep in an object; None where the path ends early."""
    for key in keys:
        value = cast("Json", value).get(key) if isinstance(value, Mapping) else None
    return value


def texts(value: object) -> dict[str, str]:
    """A map of strings, as labels are."""
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, Mapping) else {}


def allocatable(node: Json) -> dict[str, str]:
    """What may be asked for on a node, the amounts as they are written."""
    return texts(at(node, "status", "allocatable"))


def amount(node: Json, resource: str) -> int:
    """How many of a resource the node lets be asked for."""
    text = str(at(node, "status", "allocatable", resource) or "0")
    return int(text) if text.isdecimal() else 0


def resources_of(node: Json) -> dict[str, int]:
    return {name: amount(node, name) for name in allocatable(node)}


def known(host: Host | None) -> bool:
    """Whether a cluster was asked at all."""
    return bool(host and host.surroundings and (host.surroundings.nodes or host.surroundings.objects))


def nodes(host: Host | None) -> tuple[Json, ...]:
    return host.surroundings.nodes if host and host.surroundings else ()


def objects(host: Host | None, kind: str) -> Iterator[Json]:
    if host and host.surroundings:
        yield from (thing for thing in host.surroundings.objects if thing.get("kind") == kind)


def fitting(workload: Workload, host: Host | None) -> tuple[Json, ...]:
    """Nodes that the pod's own selector and name allow."""
    pod = workload.pod
    if pod is None:
        return ()
    return tuple(
        node
        for node in nodes(host)
        if all(cluster.labels(node).get(key) == value for key, value in pod.node_selector.items())
        and (not pod.node_name or cluster.name(node) == pod.node_name)
    )


def offering(workload: Workload, host: Host | None, resource: str) -> tuple[Json, ...]:
    """Of the fitting nodes, those that have the resource at all."""
    return tuple(node for node in fitting(workload, host) if amount(node, resource) > 0)


def taints(node: Json) -> Iterator[tuple[str, str, str]]:
    """Key, value and effect of those that keep a pod away for good; the kubelet's own come and go."""
    for taint in cluster.taints(node):
        key, effect = str(at(taint, "key") or ""), str(at(taint, "effect") or "")
        if effect in _BLOCKING and not key.startswith(("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")):
            yield key, str(at(taint, "value") or ""), effect


def tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect not in ("", effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", key)
    return toleration.key == key and toleration.value == value


def handlers(node: Json) -> set[str] | None:
    """Names of the runtime handlers that the node's container engine has; None where it does not say (before 1.30)."""
    found = at(node, "status", "runtimeHandlers")
    if not isinstance(found, list | tuple) or not found:
        return None
    return {str(at(handler, "name") or "") for handler in found}
