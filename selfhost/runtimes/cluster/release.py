"""One deployment's objects in its cluster: found, applied, removed, and proved to be gone."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfhost.runtimes.cluster.answers import NotServed
from selfhost.runtimes.cluster.apply import delete, ours
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.record import Record
from selfhost.runtimes.cluster.watch import Kind

Object = dict[str, Any]
INSTANCE = "app.kubernetes.io/instance"
ENGINE_SELECTOR = "app.kubernetes.io/component=engine"
KINDS: tuple[tuple[str, str], ...] = (
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("v1", "Service"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("networking.k8s.io/v1", "Ingress"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("policy/v1", "PodDisruptionBudget"),
    ("monitoring.coreos.com/v1", "PodMonitor"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("resource.k8s.io/v1beta2", "ResourceClaimTemplate"),
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplate"),
    ("v1", "ConfigMap"),
    ("v1", "ServiceAccount"),
)
"""What the chart can make beside volumes and Secrets."""
POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A volume that holds weights."""

    name: str
    size: str
    storage_class: str
    namespace: str

    def __str__(self) -> str:
        return f"PersistentVolumeClaim {self.name} in {self.namespace}"


def deployment_of(cluster: Cluster, record: Record) -> Object | None:
    return cluster.find(cluster.resource("apps/v1", "Deployment").path(cluster.namespace, record.deployment))


def selector(record: Record) -> str:
    return f"{INSTANCE}={record.release},{ENGINE_SELECTOR}"


def pods_of(cluster: Cluster, record: Record) -> tuple[Object, ...]:
    return cluster.list(f"/api/v1/namespaces/{cluster.namespace}/pods", labelSelector=selector(record))


def all_pods(cluster: Cluster, record: Record) -> tuple[Object, ...]:
    """The fetch job's and the test's too."""
    return cluster.list(f"/api/v1/namespaces/{cluster.namespace}/pods", labelSelector=f"{INSTANCE}={record.release}")


def replica_sets_of(cluster: Cluster, record: Record) -> tuple[Object, ...]:
    return cluster.list(f"/apis/apps/v1/namespaces/{cluster.namespace}/replicasets", labelSelector=selector(record))


def watched(record: Record) -> tuple[Kind, ...]:
    """What a wait looks at."""
    mine = f"{INSTANCE}={record.release}"
    return (
        Kind(api_version="apps/v1", kind="Deployment", selector=mine),
        Kind(api_version="apps/v1", kind="ReplicaSet", selector=mine),
        Kind(api_version="batch/v1", kind="Job", selector=mine),
        Kind(api_version="v1", kind="Pod", selector=mine),
        Kind(api_version="v1", kind="PersistentVolumeClaim"),
        Kind(api_version="v1", kind="Event"),
    )


def served(cluster: Cluster, kinds: Sequence[tuple[str, str]] = KINDS) -> tuple[tuple[str, str], ...]:
    """Those that this server knows."""
    return tuple(one for one in kinds if _knows(cluster, *one))


def _knows(cluster: Cluster, version: str, kind: str) -> bool:
    try:
        cluster.resource(version, kind)
    except NotServed:
        return False
    return True


def remove(cluster: Cluster, name: str) -> tuple[str, ...]:
    """Every object that carries the deployment's name, but volumes; in words."""
    kinds = served(cluster, (*KINDS, ("v1", "Secret")))
    found = {(one["kind"], one["metadata"]["name"]): one for one in ours(cluster, name=name, kinds=kinds)}
    return tuple(f"{kind} {called}" for (kind, called), one in found.items() if delete(cluster, one))


def pods_left(cluster: Cluster, record: Record, *, within_s: float) -> tuple[Object, ...]:
    """Pods of the deployment that are still there after so long; empty once none is."""
    deadline = time.monotonic() + within_s
    while True:
        left = all_pods(cluster, record)
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(POLL_S)


def claims_of(cluster: Cluster, name: str, *, release: str) -> tuple[Claim, ...]:
    """The volumes that this deployment made; an existing claim that it used is not one of them."""
    return tuple(
        Claim(
            name=str(one["metadata"]["name"]),
            size=_size(one),
            storage_class=str((one.get("spec") or {}).get("storageClassName") or ""),
            namespace=cluster.namespace,
        )
        for one in ours(cluster, name=name, kinds=(("v1", "PersistentVolumeClaim"),))
        if ((one["metadata"].get("labels") or {}).get(INSTANCE)) == release
    )


def _size(claim: Mapping[str, Any]) -> str:
    """What it has, or asked for."""
    has = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    asked = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return str(has or asked or "?")
