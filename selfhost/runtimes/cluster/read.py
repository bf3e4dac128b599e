"""The objects of a cluster that a plan and a diagnosis need. Reads only; Secrets are never asked for."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from selfhost.runtimes.cluster.answers import ApiError, NotServed
from selfhost.runtimes.cluster.client import Cluster

Object = dict[str, Any]
EVERYWHERE, HERE, WIDE = "everywhere", "here", "wide"
_KINDS: tuple[tuple[str, str, str], ...] = (
    ("v1", "Node", WIDE),
    ("v1", "PersistentVolume", WIDE),
    ("node.k8s.io/v1", "RuntimeClass", WIDE),
    ("storage.k8s.io/v1", "StorageClass", WIDE),
    ("scheduling.k8s.io/v1", "PriorityClass", WIDE),
    ("resource.k8s.io/v1", "DeviceClass", WIDE),
    ("resource.k8s.io/v1", "ResourceSlice", WIDE),
    ("resource.k8s.io/v1beta2", "DeviceClass", WIDE),
    ("resource.k8s.io/v1beta2", "ResourceSlice", WIDE),
    ("resource.k8s.io/v1beta1", "DeviceClass", WIDE),
    ("resource.k8s.io/v1beta1", "ResourceSlice", WIDE),
    ("v1", "Pod", EVERYWHERE),
    ("resource.k8s.io/v1", "ResourceClaim", EVERYWHERE),
    ("resource.k8s.io/v1", "ResourceClaimTemplate", HERE),
    ("apps/v1", "Deployment", HERE),
    ("apps/v1", "ReplicaSet", HERE),
    ("apps/v1", "StatefulSet", HERE),
    ("batch/v1", "Job", HERE),
    ("v1", "PersistentVolumeClaim", HERE),
    ("v1", "Event", HERE),
    ("v1", "ResourceQuota", HERE),
    ("v1", "LimitRange", HERE),
    ("v1", "ServiceAccount", HERE),
    ("v1", "Service", HERE),
    ("v1", "ConfigMap", HERE),
    ("policy/v1", "PodDisruptionBudget", HERE),
    ("autoscaling/v2", "HorizontalPodAutoscaler", HERE),
)
_ONCE = frozenset({"DeviceClass", "ResourceSlice"})
"""Served in several versions; the newest that is there counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`unread`: kinds that could not be read, each with its reason."""

    objects: tuple[Object, ...]
    unread: Mapping[str, str] = field(default_factory=dict)


def read_objects(cluster: Cluster, *, more: Sequence[tuple[str, str, str]] = ()) -> Read:
    """What is around a deployment in the cluster's namespace. Raises NoAnswer, ApiError for 401 and for a sick server.

    A kind that this account may not see is missing, and said to be. `more` kinds, as those of `_KINDS`.
    """
    cluster.get("/version")  # whoever does not answer, or knows nobody of this name, is told apart here
    asked = _asked(cluster, (*_KINDS, *more))
    with ThreadPoolExecutor(max_workers=6) as pool:
        found = list(pool.map(lambda one: _read(cluster, *one), asked))
    objects = [_slim(one) for part, _ in found for one in part]
    unread = {kind: why for (_, kind, _), (_, why) in zip(asked, found, strict=True) if why}
    return Read(objects=(*objects, *_namespace(cluster, unread)), unread=unread)


def _asked(cluster: Cluster, kinds: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The kinds that this server knows."""
    chosen: list[tuple[str, str, str]] = []
    for version, kind, where in kinds:
        if kind in _ONCE and any(kind == one for _, one, _ in chosen):
            continue
        try:
            cluster.resource(version, kind)
        except NotServed:
            continue
        except ApiError as error:
            if error.status in (401, 500, 502, 503, 504):
                raise
            continue
        chosen.append((version, kind, where))
    return chosen


def _read(cluster: Cluster, version: str, kind: str, where: str) -> tuple[tuple[Object, ...], str]:
    resource = cluster.resource(version, kind)
    here = resource.path(cluster.namespace)
    path = f"{resource.base}/{resource.plural}" if where in (WIDE, EVERYWHERE) else here
    try:
        return _named(cluster.list(path), version, kind), ""
    except ApiError as error:
        if error.status == 403 and where == EVERYWHERE:
            return _of_this_namespace(cluster, here, version, kind)
        if error.status in (403, 404):
            return (), error.message or str(error)
        raise


def _of_this_namespace(cluster: Cluster, path: str, version: str, kind: str) -> tuple[tuple[Object, ...], str]:
    """What pods of other namespaces hold is then unknown."""
    try:
        return _named(cluster.list(path), version, kind), f"only those of {cluster.namespace} may be read"
    except ApiError as error:
        return (), error.message or str(error)


def _named(found: tuple[Object, ...], version: str, kind: str) -> tuple[Object, ...]:
    return tuple({**one, "apiVersion": version, "kind": kind} for one in found)


def _namespace(cluster: Cluster, unread: dict[str, str]) -> tuple[Object, ...]:
    try:
        found = cluster.find(f"/api/v1/namespaces/{cluster.namespace}")
    except ApiError as error:
        unread["Namespace"] = error.message or str(error)
        return ()
    return ({**_slim(found), "apiVersion": "v1", "kind": "Namespace"},) if found is not None else ()


def _slim(one: Object) -> Object:
    """Without who set which field when: half of an object, and nothing a diagnosis reads."""
    meta = {key: value for key, value in (one.get("metadata") or {}).items() if key != "managedFields"}
    return {**one, "metadata": meta}
