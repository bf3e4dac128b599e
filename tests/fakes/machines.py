"""Machines with what surrounds their cards: engines, toolkits, CDI, a cluster. By the name that a case gives."""

from dataclasses import replace
from typing import Any

from selfhost.shapes.host import (
    Accelerator,
    DeviceNode,
    Host,
    Known,
    Nesting,
    Partition,
    Partitioning,
    Tenant,
    Unknown,
    Vendor,
)
from selfhost.shapes.surroundings import CdiDevice, CdiSpec, DriverStack, Engine, Surroundings, Toolkit
from tests.fakes.planning import GIB, a_card, a_host

ALL_RUNTIMES = ("io.containerd.runc.v2", "nvidia", "runc")


def a_docker(version: str = "29.1.3", **more: Any) -> Engine:
    facts: dict[str, Any] = {
        "kind": "docker",
        "version": version,
        "answers": Known(True, "docker info"),
        "rootless": Known(False, "docker info"),
        "runtimes": ALL_RUNTIMES,
        "default_runtime": "runc",
        "cgroup_driver": "systemd",
        "cgroup_version": "2",
        "injects": ("nvidia:gpus", "nvidia:runtime"),
    }
    return Engine(**{**facts, **more})


def a_machine(*cards: Accelerator, engine: Engine | None = None, **surroundings: Any) -> Host:
    engines = (engine,) if engine else ()
    return a_host(accelerators=cards, surroundings=Surroundings(engines=engines, **surroundings))


def a_cluster(*nodes: dict[str, object], objects: tuple[dict[str, object], ...] = ()) -> Host:
    return a_host(surroundings=Surroundings(nodes=nodes, objects=objects))


def a_node(
    name: str = "gpu-1",
    *,
    allocatable: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    taints: tuple[dict[str, str], ...] = (),
    handlers: tuple[str, ...] = (),
) -> dict[str, object]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": "32", **(allocatable or {"nvidia.com/gpu": "8"})},
            "runtimeHandlers": [{"name": handler} for handler in handlers],
        },
    }


def a_runtime_class(name: str, handler: str = "") -> dict[str, object]:
    return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler or name}


def _driver(cuda: str) -> tuple[DriverStack, ...]:
    return (
        DriverStack(
            vendor=Vendor.NVIDIA,
            module=Known("550.144.03", "/proc/driver/nvidia/version"),
            loaded=Known(True, "/proc/modules"),
            cuda=Known(cuda, "nvidia-smi"),
        ),
    )


def _cdi(*names: str) -> tuple[CdiSpec, ...]:
    file = "/etc/cdi/nvidia.yaml"
    devices = tuple(CdiDevice(name=name, file=file) for name in names)
    return (CdiSpec(file=file, kind="nvidia.com/gpu", version="0.6.0", devices=devices),)


TWO = (a_card(0), a_card(1))
FOUR = tuple(a_card(index) for index in range(4))
_SLICE = Partition(name="3g.40gb", uuid="MIG-1b1c2d3e-0000-5000-8000-000000000001", memory=Known(40 * GIB, "nvml"))
_H100 = replace(
    a_card(0, name="NVIDIA H100 80GB HBM3", arch="sm_90", gib=80),
    partitioning=Partitioning.MIG,
    partition_mode="Enabled",
    partitions=(_SLICE,),
)
_BUSY = replace(
    a_card(0, free_gib=3.1),
    tenants=(Tenant(pid=4242, name="python", memory=Known(20 * GIB, "nvml")),),
)
_ORIN = replace(a_card(0, name="Orin (nvgpu)", arch="sm_87", gib=30), unified=True, memory_free=Unknown("N/A"))
_SHARED = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}

HOSTS: dict[str, Host] = {
    "no-card": a_host(),
    "one-nvidia": a_host(accelerators=(a_card(),)),
    "two-nvidia": a_host(accelerators=TWO),
    "four-nvidia": a_host(accelerators=FOUR),
    "mixed-nvidia": a_host(accelerators=(a_card(0, name="NVIDIA GeForce RTX 3060", arch="sm_86", gib=11.6), a_card(1))),
    "two-amd": a_host(accelerators=tuple(a_card(i, name="MI300X", vendor=Vendor.AMD, arch="gfx942") for i in range(2))),
    "two-amd-numbered": a_host(
        accelerators=tuple(
            replace(a_card(i, name="MI300X", vendor=Vendor.AMD, arch="gfx942"), tool_index={"hip": i, "amd-smi": i})
            for i in range(2)
        )
    ),
    "one-intel": a_host(
        accelerators=(a_card(0, name="Intel Data Center GPU Max 1550", vendor=Vendor.INTEL, arch="pvc"),)
    ),
    "mig": a_host(accelerators=(_H100,)),
    "busy-first": a_host(accelerators=(_BUSY, *(a_card(index) for index in range(1, 4)))),
    "idle-four": a_host(accelerators=FOUR),
    "docker-27": a_machine(*TWO, engine=a_docker("27.5.1")),
    "docker-28": a_machine(*TWO, engine=a_docker("28.0.4")),
    "docker-28-cgroupfs": a_machine(*TWO, engine=a_docker("28.0.4", cgroup_driver="cgroupfs")),
    "docker-29": a_machine(*TWO, engine=a_docker(injects=("nvidia:cdi", "nvidia:gpus", "nvidia:runtime"))),
    "docker-29-no-cdi": a_machine(*TWO, engine=a_docker()),
    "docker-legacy": a_machine(
        *TWO,
        engine=a_docker("28.0.4"),
        toolkits=(Toolkit(vendor=Vendor.NVIDIA, version=Known("1.17.5", "nvidia-ctk"), mode="legacy"),),
    ),
    "docker-no-runtime": a_machine(
        a_card(), engine=a_docker(runtimes=("io.containerd.runc.v2", "runc"), injects=("nodes",))
    ),
    "nixos": a_machine(
        a_card(),
        engine=a_docker(
            runtimes=("io.containerd.runc.v2", "runc"),
            injects=("nvidia:cdi",),
            cdi_devices=("nvidia.com/gpu=0", "nvidia.com/gpu=all"),
        ),
    ),
    "cdi-two": a_machine(*TWO, engine=a_docker(), cdi=_cdi("0", "1", "all", TWO[0].uuid)),
    "podman-cdi": a_machine(
        *TWO,
        engine=a_docker("5.4.0", kind="podman", runtimes=("crun",), default_runtime="crun"),
        cdi=_cdi("0", "1", "all"),
    ),
    "jetson": replace(a_machine(_ORIN, engine=a_docker("27.5.1")), kernel="5.15.148-tegra"),
    "jetson-default": replace(
        a_machine(_ORIN, engine=a_docker("27.5.1", default_runtime="nvidia")), kernel="5.15.148-tegra"
    ),
    "driver-12.4": a_machine(a_card(), drivers=_driver("12.4")),
    "driver-13.0": a_machine(a_card(), drivers=_driver("13.0")),
    "t4-driver-12.4": a_machine(a_card(name="Tesla T4", arch="sm_75", gib=15), drivers=_driver("12.4")),
    "wsl2-two": replace(
        a_host(accelerators=TWO),
        kernel="6.6.87.2-microsoft-standard-WSL2",
        nesting=(Nesting(label="WSL2", proof="kernel"),),
    ),
    "slurm": replace(a_host(accelerators=FOUR), env={"SLURM_JOB_ID": "4711"}),
    "two-nvidia-nodes": a_host(
        accelerators=tuple(
            replace(card, nodes=(DeviceNode(path=f"/dev/nvidia{card.index}", opened="ok"),)) for card in TWO
        )
    ),
    "k8s": a_cluster(a_node()),
    "k8s-mig-mixed": a_cluster(a_node(allocatable={"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "2"})),
    "k8s-mig-single": a_cluster(
        a_node(
            allocatable={"nvidia.com/gpu": "14"},
            labels={"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"},
        )
    ),
    "k8s-shared": a_cluster(a_node(allocatable={"nvidia.com/gpu": "32"}, labels=_SHARED)),
    "k8s-some-shared": a_cluster(a_node(labels=_SHARED), a_node("gpu-2")),
    "k8s-tainted": a_cluster(a_node(taints=(_TAINT,))),
    "k8s-nri": a_cluster(a_node(), objects=({"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}},)),
    "k8s-storage": a_cluster(a_node(), objects=({"kind": "StorageClass", "metadata": {"name": "standard"}},)),
    "k8s-class-no-handler": a_cluster(a_node(handlers=("", "runc")), objects=(a_runtime_class("nvidia"),)),
    "k8s-class": a_cluster(
        a_node(handlers=("", "runc", "nvidia")),
        objects=(a_runtime_class("nvidia"), {"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}),
    ),
    "k3s": a_cluster(a_node(handlers=("", "runc", "nvidia")), objects=(a_runtime_class("nvidia"),)),
    "gke": a_cluster(a_node(labels={"cloud.google.com/gke-accelerator": "nvidia-l4"}, taints=(_TAINT,))),
}
