"""What the scheduler is asked for: a resource or a claim, and by which labels and taints the node is found."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from selfhost.core.errors import InputError
from selfhost.hosts.cluster_choice import is_for_cards
from selfhost.hosts.cluster_facts import Group
from selfhost.plan.cluster.case import Case
from selfhost.shapes.cluster import ClusterDevices, DeviceClaim, NodeLabel
from selfhost.shapes.host import Partitioning, Vendor
from selfhost.shapes.plan import Evidence
from selfhost.shapes.workload import Toleration

NVIDIA = "nvidia.com"
RESOURCES = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu", Vendor.INTEL: "gpu.intel.com/xe"}
TAINTS = {
    Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu", Vendor.INTEL: "gpu.intel.com/gpu",
}  # fmt: skip
_AS_GOOD = 0.97
"""One card reports a few percent more or less memory under different drivers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    devices: ClusterDevices
    value: str
    reason: str
    evidence: Evidence
    reasons: dict[str, str]


def allocation_of(case: Case) -> Allocation:
    """Raises InputError for more than one slice or share in one engine."""
    if not case.devices.cards:
        devices = ClusterDevices(vendor="none", mode="none")
        return Allocation(
            devices=devices, value="none", reason="the processor serves", evidence=Evidence.READ_IN_CODE,
            reasons={"accelerator": "no card: the processor serves"},
        )  # fmt: skip
    _refuse_many(case)
    return _claimed(case, case.group) if case.group is not None and case.group.by_claim else _plugged(case)


def _plugged(case: Case) -> Allocation:
    group, vendor = case.group, case.devices.cards[0].vendor
    resource = group.kind.resource if group is not None else _resource(case)
    labels = tuple(_labels(case, group)) if group is not None else ()
    devices = ClusterDevices(
        vendor=vendor.value, mode="devicePlugin", resource=resource, count=case.ranks, labels=labels,
        tolerations=tolerations_of(case),
    )  # fmt: skip
    why = _where(group) if group is not None else "the vendor's own name for it; the cluster was not looked at"
    label_why = _label_words(labels, group)
    return Allocation(
        devices=devices,
        value=f"{resource}: {case.ranks}",
        reason=why,
        evidence=Evidence.SEEN_HERE if group is not None else Evidence.ASSUMED,
        reasons={
            "accelerator": f"{why}; the scheduler chooses the cards, and no variable in the pod does",
            "accelerator.nodeLabels": label_why,
            "accelerator.tolerations": _toleration_words(group),
        },
    )


def _resource(case: Case) -> str:
    card = case.devices.cards[0]
    if card.partitioning is Partitioning.MIG and card.partition_mode:
        return f"{NVIDIA}/mig-{card.partition_mode}"
    if card.vendor is Vendor.INTEL and card.kernel_driver == "i915":
        return "gpu.intel.com/i915"
    return RESOURCES[card.vendor]


def _claimed(case: Case, group: Group) -> Allocation:
    kind = group.kind
    devices = ClusterDevices(
        vendor=kind.vendor.value, mode="dra", count=case.ranks, tolerations=tolerations_of(case),
        claim=DeviceClaim(
            api_version=group.slices[0].api_version,
            device_class=kind.resource,
            selectors=tuple(_selectors(group)),
            constraints=tuple(_constraints(group, case.ranks)),
        ),
    )  # fmt: skip
    why = f"no node offers the card as a resource, and {len(group.slices)} are published for claims of {kind.resource}"
    return Allocation(
        devices=devices,
        value=f"claim of {case.ranks} × {kind.resource}",
        reason=why,
        evidence=Evidence.SEEN_HERE,
        reasons={"accelerator": why, "accelerator.tolerations": _toleration_words(group)},
    )


def _selectors(group: Group) -> Iterator[str]:
    """By size and kind, never by number."""
    kind = group.kind
    driver = "gpu.nvidia.com" if kind.profile else kind.resource
    if kind.profile and kind.vendor is Vendor.NVIDIA:
        yield f"device.attributes['{driver}'].profile == '{kind.profile}'"
        return
    if kind.vendor is Vendor.AMD:
        yield f"device.attributes['{driver}'].type == 'amdgpu'"
    if kind.memory_mib and kind.vendor is not Vendor.INTEL:
        floor = int(kind.memory_mib * _AS_GOOD)
        yield f"device.capacity['{driver}'].memory.compareTo(quantity('{floor}Mi')) >= 0"


def _constraints(group: Group, ranks: int) -> Iterator[dict[str, object]]:
    if ranks > 1 and group.kind.vendor is Vendor.INTEL:
        yield {"requests": ["gpu"], "matchAttribute": "gpu.intel.com/pciRoot"}


def _labels(case: Case, group: Group) -> Iterator[NodeLabel]:
    """Only labels that the nodes carry: one that none has keeps the pod waiting for ever."""
    kind = group.kind
    if not kind.labelled:
        return
    if kind.vendor is Vendor.AMD:
        yield NodeLabel(
            key="amd.com/gpu.product-name", operator="In", values=_values(group, "amd.com/gpu.product-name")
        )
    elif kind.vendor is Vendor.INTEL:
        yield NodeLabel(key="gpu.intel.com/product", operator="In", values=_values(group, "gpu.intel.com/product"))
    elif kind.vendor is Vendor.NVIDIA:
        sliced = kind.resource.startswith(f"{NVIDIA}/mig-")
        key = f"{kind.resource}.memory" if sliced else f"{NVIDIA}/gpu.memory"
        yield NodeLabel(key=key, operator="Gt", values=(str(int(kind.memory_mib * _AS_GOOD)),))
        if not sliced and _values(group, f"{NVIDIA}/gpu.sharing-strategy"):
            strategies = _values(group, f"{NVIDIA}/gpu.sharing-strategy")
            yield NodeLabel(key=f"{NVIDIA}/gpu.sharing-strategy", operator="In", values=strategies)
        if _older_beside(case, group):
            major = kind.arch.removeprefix("sm_")[:-1]
            yield NodeLabel(key=f"{NVIDIA}/gpu.compute.major", operator="Gt", values=(str(int(major) - 1),))


def _older_beside(case: Case, group: Group) -> bool:
    """Another node of the same resource has cards that are large enough and of an older generation."""
    kind, facts = group.kind, case.facts
    if facts is None or not kind.arch.startswith("sm_"):
        return False
    mine = int(kind.arch.removeprefix("sm_")[:-1])
    for other in facts.groups:
        arch = other.kind.arch.removeprefix("sm_")[:-1]
        large = other.kind.memory_mib > kind.memory_mib * _AS_GOOD
        if other.kind.resource == kind.resource and large and arch.isdecimal() and int(arch) < mine:
            return True
    return False


def _values(group: Group, label: str) -> tuple[str, ...]:
    return tuple(sorted({node.labels[label] for node in group.nodes if label in node.labels}))


def tolerations_of(case: Case) -> tuple[Toleration, ...]:
    """Of the taints that keep others off nodes with cards. Taints of another meaning are the cluster's own affair."""
    group, vendor = case.group, case.devices.cards[0].vendor
    usual = Toleration(key=TAINTS[vendor], operator="Exists", effect="NoSchedule")
    if group is None:
        return (usual,)
    seen = {
        (taint.key, taint.effect): replace(taint, value="")
        for node in group.nodes
        for taint in node.taints
        if is_for_cards(taint) and taint.effect != "PreferNoSchedule"
    }
    return tuple(seen[key] for key in sorted(seen))


def _where(group: Group) -> str:
    nodes = len(group.nodes)
    word = "node offers" if nodes == 1 else "nodes offer"
    return f"{nodes} {word} {group.total}, of which {group.total_free} are free"


def _label_words(labels: tuple[NodeLabel, ...], group: Group | None) -> str:
    if labels:
        return "a card with as much memory as the plan was made for; greater than, since drivers report it differently"
    if group is None:
        return "none: the cluster was not looked at, and a label that no node has keeps a pod waiting for ever"
    return "none: these nodes have no labels of their cards, so a smaller one of the same resource may be taken"


def _toleration_words(group: Group | None) -> str:
    return "as vendors and clouds name it; more than needed does no harm" if group is None else "as the nodes have them"


def _refuse_many(case: Case) -> None:
    kind = case.group.kind if case.group is not None else None
    cut = case.devices.cards[0].partitioning is Partitioning.MIG or (kind is not None and bool(kind.profile))
    shared = kind is not None and kind.shared > 1
    if case.ranks == 1 or not (cut or shared):
        return
    raise InputError(
        f"{case.ranks} ranks cannot run on {'slices' if cut else 'shares'} of cards",
        why="Slices reach no other device." if cut else "Two shares may be of one and the same card.",
        fix=("take one, without parallel sizes behind `--`", "or ask for nodes with whole cards"),
        id="PL093",
    )
