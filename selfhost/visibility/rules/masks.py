"""Masks: environment variables that hide devices from one process."""

import re
from collections.abc import Iterator, Mapping

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility.rule import Found, place, rule

NVIDIA = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables"
AMD = "https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html"
INTEL = "https://oneapi-src.github.io/level-zero-spec/level-zero/latest/core/PROG.html#environment-variables"

_VENDOR_OF = {
    "CUDA_VISIBLE_DEVICES": (Vendor.NVIDIA, Vendor.AMD),  # an alias of HIP's on ROCm
    "HIP_VISIBLE_DEVICES": (Vendor.AMD,),
    "ROCR_VISIBLE_DEVICES": (Vendor.AMD,),
    "ZE_AFFINITY_MASK": (Vendor.INTEL,),
}


def ordinals(text: str) -> tuple[int, ...] | None:
    """`0,2` → (0, 2), `1.0` → (1,) (card and tile); None for a mask that is not all numbers."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(re.fullmatch(r"\d+(\.\d+)?", part) for part in parts):
        return None
    return tuple(int(part.split(".")[0]) for part in parts)


def _cards(host: Host, variable: str) -> tuple[Accelerator, ...]:
    for vendor in _VENDOR_OF[variable]:
        cards = tuple(card for card in host.accelerators if card.vendor is vendor)
        if cards:
            return cards
    return ()


@rule("DV002", Severity.ERROR, source=NVIDIA)
def mask_points_outside(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None:
        return
    visible_to_hip = ordinals(workload.env.get("ROCR_VISIBLE_DEVICES", ""))
    for variable in _VENDOR_OF:
        wanted = ordinals(workload.env.get(variable, ""))
        if wanted is None:
            continue
        cards = _cards(host, variable)
        count = len(cards)
        if variable in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") and cards and cards[0].vendor is Vendor.AMD:
            count = min(count, len(visible_to_hip)) if visible_to_hip is not None else count
        outside = [number for number in wanted if number >= count]
        if outside:
            has = "none" if not count else "only device 0" if count == 1 else f"devices 0 to {count - 1}"
            yield Found(
                title=f"{variable} names device {outside[0]}; this machine has {has} for it",
                place=place(workload, f"env.{variable}"),
                evidence=f"{variable}={workload.env[variable]}",
                why="A mask counts from 0 over what the process can see. CUDA cuts the list at the first number that "
                "does not exist, so the engine finds fewer devices than meant, or none.",
                fix=(f"remove {variable}, or name devices that exist",),
            )


@rule("DV004", Severity.ERROR, source=AMD)
def two_layers_of_amd_masks(workload: Workload, host: Host | None) -> Iterator[Found]:
    lower = workload.env.get("ROCR_VISIBLE_DEVICES", "")
    if not lower or _is_nvidia(host):
        return
    kept = len([part for part in lower.split(",") if part.strip()])
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
    if hip and cuda and hip != cuda and not _is_nvidia(host):
        yield Found(
            title=f"HIP_VISIBLE_DEVICES={hip} and CUDA_VISIBLE_DEVICES={cuda} disagree",
            place=place(workload, "env.CUDA_VISIBLE_DEVICES"),
            evidence=f"HIP_VISIBLE_DEVICES={hip} · CUDA_VISIBLE_DEVICES={cuda}",
            why="On ROCm they are two names of one mask; vLLM compares them when it starts and stops.",
            fix=("remove CUDA_VISIBLE_DEVICES",),
        )


@rule("DV063", Severity.WARNING, source=INTEL)
def tiles_or_cards(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or "ZE_AFFINITY_MASK" not in workload.env or "ZE_FLAT_DEVICE_HIERARCHY" in workload.env:
        return
    tiled = [card for card in host.accelerators if card.vendor is Vendor.INTEL and "Max 1550" in card.name]
    if tiled:
        yield Found(
            title=f"ZE_AFFINITY_MASK={workload.env['ZE_AFFINITY_MASK']} may mean tiles or cards",
            place=place(workload, "env.ZE_AFFINITY_MASK"),
            evidence=f"{tiled[0].name} has two tiles; ZE_FLAT_DEVICE_HIERARCHY is not set",
            why="With FLAT each tile is a device of its own, with COMPOSITE each card is; the default changed between "
            "driver versions.",
            fix=("say which is meant: export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE",),
        )


@rule("DV037", Severity.WARNING, source=NVIDIA)
def order_of_mixed_cards(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None:
        return
    models = sorted({card.name for card in host.accelerators if card.vendor is Vendor.NVIDIA})
    order = workload.env.get("CUDA_DEVICE_ORDER", "")
    if len(models) > 1 and order != "PCI_BUS_ID" and _uses_cuda(workload.env):
        yield Found(
            title="CUDA may number these cards otherwise than nvidia-smi does",
            place=place(workload, "env.CUDA_DEVICE_ORDER" if order else "env.CUDA_VISIBLE_DEVICES"),
            evidence=f"{', '.join(models)}; CUDA_DEVICE_ORDER {f'is {order}' if order else 'is not set'}",
            why="By default CUDA puts the fastest card first, nvidia-smi the lowest PCI address; device 0 is then "
            "another card than the one meant.",
            fix=("export CUDA_DEVICE_ORDER=PCI_BUS_ID",),
        )


def _uses_cuda(env: Mapping[str, str]) -> bool:
    """An empty mask hides every card: nothing is left to confuse."""
    return env.get("CUDA_VISIBLE_DEVICES", "unset") not in ("", "-1")


def _is_nvidia(host: Host | None) -> bool:
    """Certain that no AMD device is meant: CUDA's mask alone counts then."""
    if host is None:
        return False
    vendors = {card.vendor for card in host.accelerators if not isinstance(card.present, Known) or card.present.value}
    return Vendor.NVIDIA in vendors and Vendor.AMD not in vendors
