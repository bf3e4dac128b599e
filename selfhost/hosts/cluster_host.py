"""A node of a group as a machine that plans are made for. Pure."""

from selfhost.hosts.cluster_facts import ClusterFacts, Group, NodeSeen
from selfhost.hosts.engine_support import support
from selfhost.shapes.host import (
    Accelerator,
    Cpu,
    Fact,
    Host,
    Known,
    Memory,
    Partitioning,
    Support,
    Unknown,
    Vendor,
)
from selfhost.shapes.surroundings import Surroundings
from selfhost.shapes.units import MIB

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
_HOW = "the cluster's nodes"
_MOST = 8
"""Cards that one engine is spread over."""


def host_on(facts: ClusterFacts, group: Group | None) -> Host:
    """The machine that the scheduler would find: the node of the group with the most that is free.

    Without a group a node for the processor alone: that with the most free memory.
    """
    node = group.best if group is not None else _roomiest(facts)
    cards = tuple(_card(group, node, index) for index in range(_on_one(group, node))) if group is not None else ()
    return Host(
        os=_said(node, "osImage"),
        kernel=_said(node, "kernelVersion"),
        python="unknown",
        cpu=_cpu(node),
        memory=_memory(node),
        accelerators=cards,
        driver=_driver(group),
        surroundings=Surroundings(
            nodes=tuple(dict(one.object) for one in facts.nodes), objects=tuple(dict(one) for one in facts.objects)
        ),
    )


def _roomiest(facts: ClusterFacts) -> NodeSeen | None:
    """Among nodes without cards first: those are what others wait for."""
    carded = {node.name for group in facts.groups for node in group.nodes}
    usable = [node for node in facts.nodes if node.usable]
    return max(usable, key=lambda node: (node.name not in carded, node.free.get("memory", 0)), default=None)


def _on_one(group: Group, node: NodeSeen | None) -> int:
    """Cards that one pod may take. Slices reach each other by no way, and shares may be of one card.

    Of cards whose size nobody knows one is taken: nothing says that a second is needed.
    """
    if node is None:
        return 0
    found = group.free(node) or group.count(node)
    alone = bool(group.kind.profile) or group.kind.shared > 1 or not group.kind.memory_mib
    return 1 if alone else min(found, _MOST)


def _card(group: Group, node: NodeSeen | None, index: int) -> Accelerator:
    kind = group.kind
    arch: Fact[str] = Known(kind.arch, _HOW) if kind.arch else Unknown("no label of the node says it")
    compiled, why = support(kind.vendor.value, arch, architecture=_architecture(node))
    total = _total(group)
    free: Fact[int] = total if group.kind.shared == 1 else Unknown("others may hold a share of it")
    return Accelerator(
        index=index,
        vendor=kind.vendor,
        name=f"{kind.name or _named(kind.vendor)}{f' MIG {kind.profile}' if _is_mig(group) else ''}",
        pci=f"{group.key}/{index}",
        uuid=f"MIG-{group.key}" if _is_mig(group) else "",
        arch=arch,
        memory_total=total,
        memory_free=free,
        support=compiled if kind.arch else Support.UNKNOWN,
        support_reason=why,
        present=Known(value=True, how=_HOW),
        openable=Known(value=True, how=_HOW),
        usable=Known(value=True, how=_HOW),
        driver_version=kind.driver,
        partitioning=Partitioning.MIG if _is_mig(group) else Partitioning.NONE,
        partition_mode=kind.profile,
    )


def _is_mig(group: Group) -> bool:
    return group.kind.vendor is Vendor.NVIDIA and bool(group.kind.profile)


def _named(vendor: Vendor) -> str:
    return {Vendor.NVIDIA: "NVIDIA GPU", Vendor.AMD: "AMD GPU", Vendor.INTEL: "Intel GPU"}.get(vendor, "GPU")


def _total(group: Group) -> Fact[int]:
    kind = group.kind
    if not kind.memory_mib:
        return Unknown("no label of the node says it, and the card's name is in no table")
    parts = kind.shared if kind.strategy == "mps" else 1  # MPS gives each client its part, time slicing does not
    return Known(kind.memory_mib * MIB // parts, "labels of the node" if kind.labelled else "cards.toml")


def _driver(group: Group | None) -> Fact[str]:
    if group is None or group.kind.vendor is not Vendor.NVIDIA:
        return Unknown("no NVIDIA card")
    if not group.kind.driver:
        return Unknown("no label of the node says the driver's version")
    return Known(group.kind.driver, "labels of the node" if not group.by_claim else "resource slices")


def _architecture(node: NodeSeen | None) -> str:
    said = node.labels.get("kubernetes.io/arch", "") if node is not None else ""
    return _ARCHITECTURES.get(said, said or "x86_64")


def _cpu(node: NodeSeen | None) -> Cpu:
    free = node.free.get("cpu") if node is not None else None
    total = node.allocatable.get("cpu") if node is not None else None
    cores: Fact[float] = Known(float(free), "allocatable, less what pods ask for") if free is not None else _NOT
    return Cpu(
        model="unknown", architecture=_architecture(node), cores=cores, cores_online=int(total or 0),
        features=_features(node),
    )  # fmt: skip


def _features(node: NodeSeen | None) -> tuple[str, ...]:
    """As Node Feature Discovery labels them: `feature.node.kubernetes.io/cpu-cpuid.AVX512F`."""
    labels = node.labels if node is not None else {}
    said = {"AVX2": "avx2", "AVX512F": "avx512f", "AVX512BF16": "avx512_bf16", "AVX512VNNI": "avx512_vnni",
            "AMXBF16": "amx_bf16", "ASIMD": "asimd", "SVE": "sve"}  # fmt: skip
    return tuple(
        name for label, name in said.items() if labels.get(f"feature.node.kubernetes.io/cpu-cpuid.{label}") == "true"
    )


_NOT = Unknown("no node was seen")


def _memory(node: NodeSeen | None) -> Memory:
    if node is None or "memory" not in node.allocatable:
        return Memory(total=_NOT, available=_NOT, limit=_NOT)
    total = int(node.allocatable["memory"])
    free = max(0, int(node.free["memory"]))
    how = "allocatable of the node"
    return Memory(
        total=Known(total, how), available=Known(free, f"{how}, less what pods ask for"), limit=Known(total, how)
    )


def _said(node: NodeSeen | None, key: str) -> str:
    status = node.object.get("status") if node is not None else None
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    return str(info.get(key) or "unknown") if isinstance(info, dict) else "unknown"
