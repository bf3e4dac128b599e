"""Objects of clusters as `kubectl get -o json` gives them: labels as GPU Feature Discovery and AMD write them."""

from typing import Any

Object = dict[str, Any]
L4 = {
    "nvidia.com/gpu.product": "NVIDIA-L4",
    "nvidia.com/gpu.memory": "23034",
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.compute.major": "8",
    "nvidia.com/gpu.compute.minor": "9",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
}
H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
}
A100_80 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.memory": "81920",
    "nvidia.com/gpu.compute.major": "8",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
}
MI300X = {
    "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
    "amd.com/gpu.vram": "192G",
    "amd.com/gpu.device-id": "74a1",
}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(
    name: str, offers: dict[str, str] | None = None, labels: dict[str, str] | None = None, *taints: Object,
    memory: str = "128Gi", cpu: str = "32", ready: str = "True", cordoned: bool = False,
) -> Object:  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/arch": "amd64", **(labels or {})}},
        "spec": {"taints": list(taints), **({"unschedulable": True} if cordoned else {})},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110", **(offers or {})},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(name: str, on: str, limits: dict[str, str], *, phase: str = "Running", namespace: str = "team") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": on, "containers": [{"name": "it", "resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def runtime_class(name: str) -> Object:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}


def device_class(name: str) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}


def l4_slice(on: str, *names: str, api: str = "resource.k8s.io/v1") -> Object:
    """As NVIDIA's DRA driver publishes it."""
    inner = {
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": "NVIDIA L4"},
            "cudaComputeCapability": {"version": "8.9.0"},
            "driverVersion": {"version": "580.95.5"},
        },
        "capacity": {"memory": {"value": "23034Mi"}},
    }
    return {
        "apiVersion": api,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{on}-gpu.nvidia.com"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": on,
            "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name, **inner} for name in names],
        },
    }


def claim(name: str, *devices: str, pool: str) -> Object:
    """One that was allocated."""
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": pool, "device": device} for device in devices]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team"},
        "status": {"allocation": {"devices": {"results": results}}},
    }
