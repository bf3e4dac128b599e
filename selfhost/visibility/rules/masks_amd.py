"""AMD's masks: two layers of them, two names of one, and two ways to count cards."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility.allocation import granted
from selfhost.visibility.images import vendor_of
from selfhost.visibility.nodes import cards
from selfhost.visibility.rule import Found, place, rule
from selfhost.visibility.rules.masks import entries, ordinals

AMD = "https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html"


@rule("DV004", Severity.ERROR, source=AMD)
def two_layers_of_amd_masks(workload: Workload, host: Host | None) -> Iterator[Found]:
    lower = workload.env.get("ROCR_VISIBLE_DEVICES", "")
    if not lower or _is_nvidia(workload, host):
        return
    kept = entries(lower)
    for variable in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        upper = workload.env.get(variable, "")
        if upper and ordinals(upper) != tuple(range(kept)):
            yield Found(
                title=f"{variable}={upper} is counted inside ROCR_VISIBLE_DEVICES={lower}, not beside it",
                place=place(workload, f"env.{variable}"),
                evidence=f"ROCR_VISIBLE_DEVICES={lower} · {variable}={upper}",
                why=f"ROCr leaves {kept} device{'s' if kept != 1 else ''}, numbered from 0; HIP's mask picks out of "
                "those. Both lists name host devices here, so HIP finds another device, or none.",
                fix=(f"keep one of the two: remove {variable}",),
            )


@rule("DV005", Severity.ERROR, source="https://github.com/vllm-project/vllm/blob/main/vllm/platforms/rocm.py")
def amd_masks_disagree(workload: Workload, host: Host | None) -> Iterator[Found]:
    hip, cuda = workload.env.get("HIP_VISIBLE_DEVICES", ""), workload.env.get("CUDA_VISIBLE_DEVICES", "")
    if hip and cuda and hip != cuda and not _is_nvidia(workload, host):
        yield Found(
            title=f"HIP_VISIBLE_DEVICES={hip} and CUDA_VISIBLE_DEVICES={cuda} disagree",
            place=place(workload, "env.CUDA_VISIBLE_DEVICES"),
            evidence=f"HIP_VISIBLE_DEVICES={hip} · CUDA_VISIBLE_DEVICES={cuda}",
            why="On ROCm they are two names of one mask; vLLM compares them when it starts and stops.",
            fix=("remove CUDA_VISIBLE_DEVICES",),
        )


@rule("DV005b", Severity.WARNING, source="https://github.com/vllm-project/vllm/pull/46636")
def cuda_mask_on_rocm(workload: Workload, host: Host | None) -> Iterator[Found]:
    """Silent where DV004 or DV005 already asks for its removal."""
    del host
    mask = workload.env.get("CUDA_VISIBLE_DEVICES", "")
    beside = workload.env.get("HIP_VISIBLE_DEVICES", "") or workload.env.get("ROCR_VISIBLE_DEVICES", "")
    if mask and vendor_of(workload.image) is Vendor.AMD and (not beside or beside == mask):
        yield Found(
            title="CUDA_VISIBLE_DEVICES is set for a ROCm image",
            place=place(workload, "env.CUDA_VISIBLE_DEVICES"),
            evidence=f"CUDA_VISIBLE_DEVICES={mask} · image {workload.image}",
            why="ROCm reads it as another name of HIP_VISIBLE_DEVICES; vLLM is giving that up and will read HIP's own.",
            fix=("remove it, and hand in only the render nodes of the cards that are meant",),
        )


@rule("DV006", Severity.WARNING, source="https://github.com/pytorch/pytorch/issues/131901")
def number_of_another_tool(workload: Workload, host: Host | None) -> Iterator[Found]:
    here = cards(host, Vendor.AMD)
    mask = workload.env.get("HIP_VISIBLE_DEVICES", "")
    wanted = ordinals(mask)
    grant = granted(workload, host, Vendor.AMD)
    if len(here) < 2 or not wanted or workload.pod is not None or grant is None or not grant.everything:
        return
    if workload.env.get("ROCR_VISIBLE_DEVICES") or set(wanted) >= set(range(len(here))):
        return
    ways = [
        (card.tool_index.get("hip"), card.tool_index.get("amd-smi", card.tool_index.get("rocm-smi"))) for card in here
    ]
    if all(hip is not None and hip == smi for hip, smi in ways):
        return
    yield Found(
        title=f"HIP_VISIBLE_DEVICES={mask} may not be the card that rocm-smi or amd-smi calls so",
        place=place(workload, "env.HIP_VISIBLE_DEVICES"),
        evidence=f"{len(here)} AMD cards",
        why="HIP counts in the order of the kernel's topology, the tools in another; with more than one card the same "
        "number can mean two of them.",
        fix=("hand in only the render node of the card, found by its PCI address:\nls -l /dev/dri/by-path",),
    )


def _by_its_tool(card: Accelerator) -> int | None:
    return card.tool_index.get("amd-smi", card.tool_index.get("rocm-smi"))


def _is_nvidia(workload: Workload, host: Host | None) -> bool:
    """Certain that no AMD device is meant: CUDA's mask alone counts then."""
    if workload.image and vendor_of(workload.image) is Vendor.NVIDIA:
        return True
    if host is None:
        return False
    vendors = {card.vendor for card in host.accelerators if not isinstance(card.present, Known) or card.present.value}
    return Vendor.NVIDIA in vendors and Vendor.AMD not in vendors
