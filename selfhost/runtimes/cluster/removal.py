"""Taking away what Helm or a person would keep: the release itself, and a volume when it is asked for."""

import time
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System
from selfhost.runtimes.cluster.answers import ApiError
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.helm import Helm, HelmFailed, find
from selfhost.runtimes.cluster.record import Record
from selfhost.runtimes.cluster.release import Claim

UNINSTALL_S = 300
GONE_S = 60.0
POLL_S = 0.5


def helm_uninstall(cluster: Cluster, system: System, record: Record) -> tuple[str, ...]:
    """The release, its volume kept; what Helm cannot do because it is not here any more is done object by object."""
    helm = find(system, context=record.context, files=record.files, namespace=record.namespace)
    if isinstance(helm, str):
        return _release_secrets(cluster, record)
    return _uninstalled(helm, record)


def _uninstalled(helm: Helm, record: Record) -> tuple[str, ...]:
    try:
        if helm.release(record.release) is None:
            return ()
        helm.uninstall(record.release, timeout_s=UNINSTALL_S)
    except HelmFailed as failed:
        raise EnvironmentMissing(
            f"helm could not uninstall {record.release}",
            why="Layer: helm. What it said stands below.",
            evidence=failed.said[-2000:],
            fix=(f"see the release:\nhelm status {record.release} --namespace {record.namespace}",),
            id="RT144",
        ) from None
    return (f"Helm release {record.release}",)


def _release_secrets(cluster: Cluster, record: Record) -> tuple[str, ...]:
    """Helm's own records of the release: with them left, a later install would be an upgrade of nothing."""
    path = f"/api/v1/namespaces/{cluster.namespace}/secrets"
    try:
        found = cluster.list(path, labelSelector=f"owner=helm,name={record.release}")
    except ApiError:
        return ()
    for one in found:
        cluster.request("DELETE", f"{path}/{one['metadata']['name']}")
    return (f"Helm release {record.release}",) if found else ()


def stays(cluster: Cluster, claim: Claim) -> str:
    """Delete a volume; why it is still there after a minute, or nothing."""
    path = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims/{claim.name}"
    try:
        cluster.request("DELETE", path)
    except ApiError as error:
        return "" if error.status == 404 else f"the API server refused: {error.message or error}"
    deadline = time.monotonic() + GONE_S
    while cluster.find(path) is not None:
        if time.monotonic() >= deadline:
            return "a pod still uses it; it goes when that pod does"
        time.sleep(POLL_S)
    return ""


def chart_of(folder: str) -> Path:
    """Where the written chart lies in a bundle."""
    return Path(folder) / "selfhost-model"
