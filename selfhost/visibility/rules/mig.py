"""MIG: a slice is a device of its own, and one process sees at most one."""

from collections.abc import Iterator

from selfhost.hosts.cluster import labels
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility import cluster
from selfhost.visibility.allocation import card_of, granted, is_mig
from selfhost.visibility.engine_size import PIPELINE, TENSOR, size
from selfhost.visibility.nodes import cards
from selfhost.visibility.rule import Found, place, rule

GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/"
PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus"


_CUT = (
    "see into what the card can be cut, then cut it:\nsudo nvidia-smi mig -lgip\nsudo nvidia-smi mig -cgi <profile> -C"
)


def parts_of_one_model(workload: Workload) -> int:
    """Tensor × pipeline: what has to exchange data at every step."""
    return (size(workload.argv, TENSOR) or 1) * (size(workload.argv, PIPELINE) or 1)


@rule("DV018", Severity.ERROR, source=GUIDE)
def whole_card_in_mig_mode(workload: Workload, host: Host | None) -> Iterator[Found]:
    grant = granted(workload, host, Vendor.NVIDIA)
    if grant is None or workload.pod is not None:
        return
    for name in grant.ids:
        card = None if is_mig(name) else card_of(name, Vendor.NVIDIA, host)
        if card is None or card.partition_mode != "Enabled":
            continue
        slices = [part.uuid for part in card.partitions if part.uuid]
        yield Found(
            title=f"{workload.label} asks for {name}, a card in MIG mode",
            place=place(workload, grant.key),
            evidence=f"{card.name} has MIG enabled; "
            + (
                f"slices: {', '.join(f'{part.name} {part.uuid}' for part in card.partitions)}" if slices else "no slice"
            ),
            why="In MIG mode the card itself computes nothing: what can be used are its slices, each with a UUID.",
            fix=(
                *(() if slices else (_CUT,)),
                f"ask for a slice by its UUID (`nvidia-smi -L` lists them): {slices[0] if slices else 'MIG-…'}",
            ),
        )


@rule("DV019", Severity.ERROR, source="https://github.com/pytorch/pytorch/issues/130181")
def spread_over_slices(workload: Workload, host: Host | None) -> Iterator[Found]:
    parts = parts_of_one_model(workload)
    if parts < 2:
        return
    seen = _slices(workload, host)
    if seen is None:
        return
    key, said = seen
    yield Found(
        title=f"{workload.label} spreads one model over {parts} devices, but gets MIG slices",
        place=place(workload, key),
        evidence=f"tensor × pipeline = {parts} · {said}",
        why="A CUDA process sees one MIG slice at most, and slices have no way to each other: the second rank finds "
        "no device.",
        fix=("run with --tensor-parallel-size 1 on one larger slice", "or take whole cards, with MIG off"),
    )


def _slices(workload: Workload, host: Host | None) -> tuple[str, str] | None:
    """Key and words of what makes its devices slices."""
    mask = workload.env.get("CUDA_VISIBLE_DEVICES", "")
    if mask.startswith("MIG-"):
        return "env.CUDA_VISIBLE_DEVICES", f"CUDA_VISIBLE_DEVICES={mask}"
    grant = granted(workload, host, Vendor.NVIDIA)
    if grant is None:
        return None
    if grant.mig:
        return grant.key, f"{grant.by}: {', '.join(grant.ids)}" if grant.ids else grant.by
    here = cards(host, Vendor.NVIDIA)
    if grant.everything and here and all(card.partition_mode == "Enabled" for card in here):
        return grant.key, f"{grant.by}: all; MIG is enabled on every card here"
    if grant.by == "nvidia.com/gpu":
        places = cluster.offering(workload, host, "nvidia.com/gpu")
        products = {labels(node).get("nvidia.com/gpu.product", "") for node in places}
        if places and all("-MIG-" in product for product in products):
            return grant.key, f"the nodes' cards are {', '.join(sorted(products))}"
    return None


@rule("DV020", Severity.ERROR, source=PLUGIN)
def card_asked_where_only_slices_are(workload: Workload, host: Host | None) -> Iterator[Found]:
    if workload.pod is None or workload.pod.limits.get("nvidia.com/gpu", "0") == "0":
        return
    here = cluster.fitting(workload, host)
    if any(cluster.amount(node, "nvidia.com/gpu") for node in here):
        return
    slices = sorted(
        {
            name
            for node in here
            for name, count in cluster.resources_of(node).items()
            if name.startswith("nvidia.com/mig-") and count
        }
    )
    if slices:
        yield Found(
            title=f"{workload.label} asks for nvidia.com/gpu; the nodes have only MIG slices to give",
            place=place(workload, "limits.nvidia.com/gpu"),
            evidence=f"nvidia.com/gpu: 0 on every node that fits · {', '.join(slices)}",
            why="With the strategy `mixed` a card in MIG mode is offered by its slices under their own names. No node "
            "ever has what is asked for, and the pod stays Pending.",
            fix=(f"ask for a slice by its name:\nresources:\n  limits:\n    {slices[0]}: 1",),
        )
