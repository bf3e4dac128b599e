"""API objects in the form of `kubectl get -o json`: what a diagnosis reads, and its usual neighbours."""

from typing import Any

Object = dict[str, Any]
UID = "6b1d3f0a-9f0e-4c2b-8a7d-5d1e0f3c2b1a"


def meta(name: str, namespace: str = "", **more: Any) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        **where,
        "uid": UID,
        "resourceVersion": "81234",
        "creationTimestamp": "2026-11-30T08:12:44Z",
        **more,
    }


def node(
    name: str,
    *,
    cards: dict[str, str] | None = None,
    labels: Object | None = None,
    taints: list[Object] | None = None,
    conditions: Object | None = None,
    memory: str = "131072000Ki",
    cpu: str = "32",
    allocatable: Object | None = None,
    runtime: str = "containerd://2.1.4",
    unschedulable: bool = False,
    **status: Any,
) -> Object:
    room = {"cpu": cpu, "memory": memory, "ephemeral-storage": "480127904Ki", "pods": "110", "hugepages-2Mi": "0"}
    stands = {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
        **(conditions or {}),
    }
    spec: Object = {"podCIDR": "10.42.0.0/24", "providerID": f"k3s://{name}"}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta(
            name,
            labels={
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                **(labels or {}),
            },
        ),
        "spec": spec,
        "status": {
            "capacity": {**room, **(cards or {})},
            "allocatable": {**room, **(cards or {}), **(allocatable or {})},
            "conditions": [
                {
                    "type": key,
                    "status": value,
                    "reason": f"Kubelet{key}",
                    "message": f"{key} is {value}",
                    "lastHeartbeatTime": "2026-12-02T10:00:00Z",
                }
                for key, value in stands.items()
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.34.2",
                "containerRuntimeVersion": runtime,
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.3 LTS",
                "kernelVersion": "6.8.0-88-generic",
            },
            **status,
        },
    }


def container(
    name: str = "engine",
    *,
    image: str = "docker.io/vllm/vllm-openai:v0.27.1",
    limits: Object | None = None,
    requests: Object | None = None,
    **more: Any,
) -> Object:
    resources: Object = {}
    if limits:
        resources["limits"] = limits
    if requests or limits:
        resources["requests"] = {**(limits or {}), **(requests or {})}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **more,
    }


def pod(
    name: str,
    namespace: str = "team",
    *,
    owner: tuple[str, str] | None = None,
    containers: list[Object] | None = None,
    node: str = "",
    phase: str = "Pending",
    status: Object | None = None,
    labels: Object | None = None,
    deleted: str = "",
    annotations: Object | None = None,
    **spec: Any,
) -> Object:
    more: Object = {"labels": labels or {"app": name}}
    if owner:
        more["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": UID, "controller": True}
        ]
    if deleted:
        more |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    if annotations:
        more["annotations"] = annotations
    body: Object = {
        "containers": containers or [container()],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        **spec,
    }
    if node:
        body["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(name, namespace, **more),
        "spec": body,
        "status": {"phase": phase, "qosClass": "Burstable", **(status or {})},
    }


def unschedulable(message: str) -> Object:
    return {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
                "lastTransitionTime": "2026-12-02T09:58:01Z",
            }
        ]
    }


def running(pod_: Object, *, ready: bool = True) -> Object:
    """The pod as the kubelet reports it when it runs."""
    word = "True" if ready else "False"
    statuses = [
        {
            "name": one["name"],
            "image": one["image"],
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-12-02T09:00:00Z"}},
            "lastState": {},
        }
        for one in pod_["spec"]["containers"]
    ]
    pod_["status"] |= {
        "phase": "Running",
        "containerStatuses": statuses,
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": word}],
    }
    return pod_


def waiting(
    reason: str,
    message: str = "",
    *,
    name: str = "engine",
    image: str = "docker.io/vllm/vllm-openai:v0.27.1",
    restarts: int = 0,
    last: Object | None = None,
) -> Object:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {
        "containerStatuses": [
            {
                "name": name,
                "image": image,
                "ready": False,
                "started": False,
                "restartCount": restarts,
                "state": state,
                "lastState": {"terminated": last} if last else {},
            }
        ],
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
    }


def ended(code: int, message: str = "", reason: str = "Error") -> Object:
    return {
        "exitCode": code,
        "reason": reason,
        "message": message,
        "startedAt": "2026-12-02T09:50:00Z",
        "finishedAt": "2026-12-02T09:52:30Z",
    }


def event(
    kind: str,
    name: str,
    reason: str,
    message: str,
    namespace: str = "team",
    *,
    count: int = 4,
    container: str = "",
    type: str = "Warning",
) -> Object:
    about = {"kind": kind, "name": name, "uid": UID, "apiVersion": "v1"}
    if kind != "Node":
        about["namespace"] = namespace
    if container:
        about["fieldPath"] = f"spec.containers{{{container}}}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": meta(f"{name}.18{abs(hash((name, reason, message))) % 10**12:012x}", namespace or "default"),
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": type,
        "count": count,
        "firstTimestamp": "2026-12-02T09:55:00Z",
        "lastTimestamp": "2026-12-02T09:59:30Z",
        "source": {"component": "default-scheduler"},
    }


def deployment(
    name: str,
    namespace: str = "team",
    *,
    replicas: int = 1,
    strategy: Object | None = None,
    labels: Object | None = None,
    conditions: list[Object] | None = None,
    made: int = 1,
    template: Object | None = None,
    **spec: Any,
) -> Object:
    how = strategy or {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(name, namespace, labels=labels or {"app": name}),
        "spec": {
            "replicas": replicas,
            "strategy": how,
            "selector": {"matchLabels": {"app": name}},
            "progressDeadlineSeconds": 600,
            "template": {"metadata": {"labels": {"app": name}}, "spec": template or {"containers": [container()]}},
            **spec,
        },
        "status": {"replicas": made, "updatedReplicas": 1, "conditions": conditions or []},
    }


def replica_set(name: str, owner: str, namespace: str = "team", *, replicas: int = 1, made: int = 1) -> Object:
    more = {
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": UID, "controller": True}
        ]
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": meta(name, namespace, **more),
        "spec": {"replicas": replicas},
        "status": {"replicas": made},
    }


def claim(
    name: str,
    namespace: str = "team",
    *,
    phase: str = "Bound",
    klass: str | None = "standard",
    volume: str = "",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    annotations: Object | None = None,
) -> Object:
    spec: Object = {
        "accessModes": list(modes),
        "resources": {"requests": {"storage": "24Gi"}},
        "volumeMode": "Filesystem",
    }
    if klass is not None:
        spec["storageClassName"] = klass
    if volume:
        spec["volumeName"] = volume
    more = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta(name, namespace, **more),
        "spec": spec,
        "status": {"phase": phase},
    }


def storage_class(
    name: str, *, default: bool = False, provisioner: str = "rancher.io/local-path", mode: str = "WaitForFirstConsumer"
) -> Object:
    notes = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta(name, **notes),
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "reclaimPolicy": "Delete",
    }


def mounted(claimed: str, path: str = "/data", *, read_only: bool = False) -> tuple[Object, Object]:
    """A volume of a claim, and its mount."""
    mount: Object = {"name": "cache", "mountPath": path, **({"readOnly": True} if read_only else {})}
    return {"name": "cache", "persistentVolumeClaim": {"claimName": claimed}}, mount
