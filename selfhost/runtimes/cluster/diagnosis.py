"""What a diagnosis reads beside what a plan needs: operators, groups, queues, releases, last words of containers."""

from collections.abc import Iterator
from typing import Any

from selfhost.runtimes.cluster.answers import ApiError, NoAnswer
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.read import HERE, WIDE, Read, read_objects

_MORE = (
    ("apps/v1", "DaemonSet", WIDE),
    ("nvidia.com/v1", "ClusterPolicy", WIDE),
    ("amd.com/v1alpha1", "DeviceConfig", WIDE),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", HERE),
    ("kueue.x-k8s.io/v1beta1", "Workload", HERE),
    ("kueue.x-k8s.io/v1beta1", "LocalQueue", HERE),
    ("keda.sh/v1alpha1", "ScaledObject", HERE),
    ("inference.networking.k8s.io/v1", "InferencePool", HERE),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease", HERE),
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", HERE),
    ("argoproj.io/v1alpha1", "Application", HERE),
)
"""Most clusters serve few of them; those that are not served are no gap."""
_OF_NODES = "default"
"""The namespace that events of nodes are written to."""
_LOGS = 4
"""Containers whose last words are fetched: the first tell what the others would."""
_LINES = 60
_LOG_S = 10.0


def read_for_diagnosis(cluster: Cluster) -> Read:
    """Raises as `read_objects`."""
    found = read_objects(cluster, more=_MORE)
    for pod, container in list(_silent(cluster, found))[:_LOGS]:
        _fill_in(cluster, pod, container)
    if cluster.namespace == _OF_NODES or "Node" in found.unread:
        return found
    return Read(objects=(*found.objects, *_said_of_nodes(cluster)), unread=found.unread)


def _said_of_nodes(cluster: Cluster) -> tuple[dict[str, Any], ...]:
    """Empty where they may not be read: a node's conditions say most of it."""
    try:
        events = cluster.list(f"/api/v1/namespaces/{_OF_NODES}/events", fieldSelector="involvedObject.kind=Node")
    except ApiError:
        return ()
    return tuple({**one, "apiVersion": "v1", "kind": "Event"} for one in events)


def _silent(cluster: Cluster, found: Read) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Containers of the namespace that ended badly and left no message (terminationMessagePolicy: File)."""
    for one in found.objects:
        meta = one.get("metadata") or {}
        if one.get("kind") != "Pod" or meta.get("namespace") != cluster.namespace:
            continue
        status = one.get("status") or {}
        for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            ended = (container.get("lastState") or {}).get("terminated") or {}
            if not container.get("ready") and ended.get("exitCode") and not ended.get("message"):
                yield one, container


def _fill_in(cluster: Cluster, pod: dict[str, Any], container: dict[str, Any]) -> None:
    """The end of its log stands for the message; a log that is gone or forbidden changes nothing."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod['metadata']['name']}/log"
    try:
        said = cluster.text(path, timeout_s=_LOG_S, container=container.get("name"), previous=True, tailLines=_LINES)
    except (ApiError, NoAnswer):
        return
    container["lastState"]["terminated"]["message"] = said
