"""A real cluster: a namespace of our own in it, and where it was asked for, two nodes without a kubelet."""

import contextlib
import datetime as dt
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from selfhost.runtimes.cluster.answers import ApiError
from selfhost.runtimes.cluster.client import Cluster

Object = dict[str, Any]
CPU_NODE, GPU_NODE = "selfhost-e2e-cpu", "selfhost-e2e-gpu"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


WANTED = os.environ.get("SELFHOST_E2E_CLUSTER", "")
"""Read at once: each test gets an environment of its own."""
FAKE = bool(os.environ.get("SELFHOST_E2E_FAKE_NODES"))


def wanted() -> str:
    """The kubeconfig; empty where nobody asked for a cluster."""
    return WANTED


def connect(namespace: str = "") -> Cluster:
    return Cluster.connect("", namespace, env={**os.environ, "KUBECONFIG": wanted()})


def may(cluster: Cluster, verb: str, resource: str) -> bool:
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": verb, "resource": resource, "group": ""}},
    }  # fmt: skip
    answer = cluster.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    return bool(answer["status"]["allowed"])


@contextlib.contextmanager
def space(level: str = "restricted") -> Iterator[Cluster]:
    """A namespace that enforces this level of Pod Security, and is gone afterwards."""
    name = f"selfhost-e2e-{uuid.uuid4().hex[:6]}"
    cluster = connect(name)
    labels = {"pod-security.kubernetes.io/enforce": level}
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    try:
        yield cluster
    finally:
        cluster.request("DELETE", f"/api/v1/namespaces/{name}")
        if FAKE:  # no kubelet says that they ended
            for pod in cluster.list(f"/api/v1/namespaces/{name}/pods"):
                path = f"/api/v1/namespaces/{name}/pods/{pod['metadata']['name']}"
                with contextlib.suppress(ApiError):
                    cluster.request("DELETE", path, {"gracePeriodSeconds": 0})


@contextlib.contextmanager
def nodes() -> Iterator[None]:
    """Two nodes that only the scheduler believes in; they say that they are ready for as long as this lasts."""
    cluster = connect()
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "200Gi"}
    cards = {
        "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034",
        "nvidia.com/gpu.count": "1", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "9",
        "nvidia.com/gpu.family": "ada-lovelace", "nvidia.com/gpu.replicas": "1", "nvidia.com/mig.capable": "false",
        "nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/cuda.driver-version.major": "580",
        "nvidia.com/cuda.driver-version.full": "580.95.05",
    }  # fmt: skip
    _node(cluster, CPU_NODE, {}, [], amounts)
    _node(cluster, GPU_NODE, cards, [GPU_TAINT], {**amounts, "nvidia.com/gpu": "1"})
    end = threading.Event()

    def live() -> None:
        while not end.wait(8.0):
            for name in (CPU_NODE, GPU_NODE):
                _ready(cluster, name)

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(timeout=10)
        for name in (CPU_NODE, GPU_NODE):
            cluster.request("DELETE", f"/api/v1/nodes/{name}")


def _node(cluster: Cluster, name: str, labels: Object, taints: list[Object], amounts: Object) -> None:
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    body = {"metadata": {"name": name, "labels": {**usual, **labels}}, "spec": {"taints": taints}}
    with contextlib.suppress(ApiError):  # one that an earlier run left
        cluster.request("POST", "/api/v1/nodes", body)
    info = {
        "architecture": "amd64", "operatingSystem": "linux", "osImage": "Debian GNU/Linux 13", "kernelVersion": "6.12",
        "kubeletVersion": "v1.34.0", "containerRuntimeVersion": "containerd://2.1.0", "machineID": "", "systemUUID": "",
        "bootID": "", "kubeProxyVersion": "",
    }  # fmt: skip
    _patch(cluster, name, {"capacity": amounts, "allocatable": amounts, "nodeInfo": info})
    _ready(cluster, name)
    # What the node controller put on it while it was new.
    kept = {"spec": {"taints": taints}}
    cluster.request("PATCH", f"/api/v1/nodes/{name}", kept, content_type="application/merge-patch+json")


def _ready(cluster: Cluster, name: str) -> None:
    at = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "stand-in", "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }  # fmt: skip
    _patch(cluster, name, {"conditions": [ready]})


def _patch(cluster: Cluster, name: str, status: Object) -> None:
    kind = "application/strategic-merge-patch+json"
    cluster.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=kind)


def until(true: Callable[[], Any], *, timeout_s: float = 60.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = true()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError("it never came true")


def helm() -> str:
    """The folder of a helm on PATH, or nothing."""
    found = shutil.which("helm")
    return os.path.dirname(found) if found else ""
