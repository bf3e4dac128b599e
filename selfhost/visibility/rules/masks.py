"""Masks: environment variables that hide devices from one process, counted inside what was granted to it."""

import re
from collections.abc import Iterator, Mapping

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Accelerator, Host, Vendor
from selfhost.shapes.workload import Form, Workload
from selfhost.visibility import paste
from selfhost.visibility.allocation import Grant, card_of, granted, index_of
from selfhost.visibility.images import engine_of, engine_version, vendor_of
from selfhost.visibility.nodes import cards
from selfhost.visibility.rule import Found, place, rule

NVIDIA = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables"
INTEL = "https://oneapi-src.github.io/level-zero-spec/level-zero/latest/core/PROG.html#environment-variables"
RENUMBERED = "https://github.com/NVIDIA/nvidia-docker/issues/907"
UUID_MASK = "https://github.com/vllm-project/vllm/pull/46132"
LAST_KNOWN_BROKEN, FIRST_SEEN_RIGHT = (0, 20, 1), (0, 32)
"""vLLM's own int() of a UUID: reported with 0.20.1 and still open in June 2026; gone in 0.32.0."""

_VENDORS_OF = {
    "CUDA_VISIBLE_DEVICES": (Vendor.NVIDIA, Vendor.AMD),  # an alias of HIP's on ROCm
    "HIP_VISIBLE_DEVICES": (Vendor.AMD,),
    "GPU_DEVICE_ORDINAL": (Vendor.AMD,),
    "ROCR_VISIBLE_DEVICES": (Vendor.AMD,),
    "ZE_AFFINITY_MASK": (Vendor.INTEL,),
    "ONEAPI_DEVICE_SELECTOR": (Vendor.INTEL,),
}
_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


def ordinals(text: str) -> tuple[int, ...] | None:
    """`0,2` → (0, 2), `1.0` → (1,) (card and tile), `level_zero:1` → (1,); None for a mask that is not all numbers."""
    parts = [part.strip() for part in text.removeprefix("level_zero:").split(",") if part.strip()]
    if not parts or not all(re.fullmatch(r"\d+(\.\d+)?", part) for part in parts):
        return None
    return tuple(int(part.split(".")[0]) for part in parts)


def entries(text: str) -> int:
    """How many devices a mask leaves, numbers or names."""
    return len([part for part in text.split(",") if part.strip()])


def _grant(workload: Workload, host: Host | None, variable: str) -> Grant | None:
    """What the mask counts over: the granted cards of the vendor that reads it."""
    vendors = _VENDORS_OF[variable]
    meant = vendor_of(workload.image) if workload.image else None
    for vendor in (meant,) if meant in vendors and meant is not None else vendors:
        found = granted(workload, host, vendor)
        if found is not None:
            return found
    return None


def _bounds(workload: Workload, host: Host | None, variable: str) -> tuple[int, str] | None:
    """Number of devices that a mask counts over, and what leaves that many; None when it is not known."""
    lower = workload.env.get("ROCR_VISIBLE_DEVICES", "")
    grant = _grant(workload, host, variable)
    count = grant.count if grant and not (workload.privileged and grant.subset) else None
    by = grant.by if grant else ""
    amd = grant.vendor is Vendor.AMD if grant else not cards(host, Vendor.NVIDIA)
    if variable in _HIP and lower and amd and (count is None or entries(lower) < count):
        count, by = entries(lower), "ROCR_VISIBLE_DEVICES"
    if count is None and grant is None and workload.form is Form.PROCESS and host is not None:
        count, by = 0, "this machine"
    return None if count is None else (count, by)


@rule("DV002", Severity.ERROR, source=NVIDIA)
def mask_points_outside(workload: Workload, host: Host | None) -> Iterator[Found]:
    yield from _no_number_at_all(workload)
    for variable in _VENDORS_OF:
        wanted = ordinals(workload.env.get(variable, ""))
        bounds = _bounds(workload, host, variable) if wanted else None
        if wanted is None or bounds is None:
            continue
        count, by = bounds
        outside = [number for number in wanted if number >= count]
        if outside:
            has = "none" if not count else "only device 0" if count == 1 else f"devices 0 to {count - 1}"
            yield Found(
                title=f"{variable} names device {outside[0]}; {by} leaves {has} for it"
                if by != "this machine"
                else f"{variable} names device {outside[0]}; this machine has {has} for it",
                place=place(workload, f"env.{variable}"),
                evidence=f"{variable}={workload.env[variable]}",
                why="A mask counts from 0 over what the process can see. CUDA cuts the list at the first number that "
                "does not exist, so the engine finds fewer devices than meant, or none.",
                fix=(f"remove {variable}, or name devices that exist",),
            )


def _no_number_at_all(workload: Workload) -> Iterator[Found]:
    """`all` is a word of the toolkit's variable, not of CUDA's; and an engine without a card does not start."""
    mask = workload.env.get("CUDA_VISIBLE_DEVICES")
    if mask is None or "CUDA_VISIBLE_DEVICES" in workload.env_sources or vendor_of(workload.image) is Vendor.AMD:
        return
    hidden = mask.strip() in ("", "-1") and vendor_of(workload.image) is Vendor.NVIDIA and engine_of(workload)
    if mask.strip() == "all" or hidden:
        yield Found(
            title=f"CUDA_VISIBLE_DEVICES={mask} hides every card",
            place=place(workload, "env.CUDA_VISIBLE_DEVICES"),
            evidence=f"CUDA_VISIBLE_DEVICES={mask}",
            why="CUDA reads numbers and UUIDs, up to the first entry that is none; what is left here is no card: "
            "`No CUDA GPUs are available`. `all` belongs into NVIDIA_VISIBLE_DEVICES.",
            fix=("remove CUDA_VISIBLE_DEVICES",),
        )


@rule("DV001", Severity.ERROR, source=RENUMBERED)
def host_numbers_in_a_container(workload: Workload, host: Host | None) -> Iterator[Found]:
    """Silent where the mask is 0, 1, … from the start: it says nothing that the grant does not."""
    if workload.privileged:
        return
    for variable in _VENDORS_OF:
        wanted = ordinals(workload.env.get(variable, ""))
        grant = _grant(workload, host, variable) if wanted else None
        if not wanted or grant is None or not (grant.subset or grant.ids) or wanted == tuple(range(len(wanted))):
            continue
        certain = _names_host_cards(wanted, grant, host)
        if not certain and workload.pod is None:
            continue
        yield Found(
            title=f"{variable}={workload.env[variable]} counts anew inside what {grant.by} grants",
            place=place(workload, f"env.{variable}"),
            evidence=f"{variable}={workload.env[variable]} · {_said(grant)}",
            why=f"What {grant.by} lets in is numbered from 0 in the container, whatever its numbers are outside. "
            "A mask with numbers of the host then points at another card, or at none.",
            fix=(f"remove {variable}; choose cards only where they are granted",),
            severity=None if certain else Severity.WARNING,
        )


def _names_host_cards(wanted: tuple[int, ...], grant: Grant, host: Host | None) -> bool:
    """Whether the numbers point outside, or are those of granted cards that stand elsewhere inside."""
    if grant.count is not None and any(number >= grant.count for number in wanted):
        return True
    numbers = [index_of(name) for name in grant.ids]
    if None in numbers:
        found = [card_of(name, grant.vendor, host) for name in grant.ids]
        numbers = [card.index if card else None for card in found]
    inside = sorted(number for number in numbers if number is not None)
    return len(inside) == len(grant.ids) > 0 and all(
        number in inside and inside.index(number) != number for number in wanted
    )


def _said(grant: Grant) -> str:
    return f"{grant.by}: {', '.join(grant.ids) if grant.ids else f'{grant.count} devices'}"


@rule("DV007", Severity.ERROR, source=UUID_MASK)
def uuid_mask(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    mask = workload.env.get("CUDA_VISIBLE_DEVICES", "")
    version = engine_version(workload.image) if workload.image else None
    if not mask.strip().startswith(("GPU-", "MIG-")) or engine_of(workload) != "vllm" or version is None:
        return
    if version >= FIRST_SEEN_RIGHT:
        return
    cards_meant = [part.strip() for part in mask.split(",")]
    yield Found(
        title=f"vLLM {'.'.join(map(str, version))} cannot read a UUID in CUDA_VISIBLE_DEVICES",
        place=place(workload, "env.CUDA_VISIBLE_DEVICES"),
        evidence=f"CUDA_VISIBLE_DEVICES={mask} · image {workload.image}",
        why="It takes each entry for a number (`invalid literal for int() with base 10`) and stops; what one sees is "
        "often `Model architectures […] failed to be inspected`.",
        fix=(
            "remove CUDA_VISIBLE_DEVICES",
            f"choose the card where it is granted:\n{paste.cards(workload, *cards_meant)}",
        ),
        severity=None if version <= LAST_KNOWN_BROKEN else Severity.WARNING,
    )


@rule("DV037", Severity.WARNING, source=NVIDIA)
def order_of_mixed_cards(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None:
        return
    seen = _seen_cards(workload, host)
    models = sorted({card.name for card in seen})
    order = workload.env.get("CUDA_DEVICE_ORDER", "")
    if len(models) > 1 and order != "PCI_BUS_ID" and _uses_cuda(workload.env):
        yield Found(
            title="CUDA may number these cards otherwise than nvidia-smi does",
            place=place(workload, "env.CUDA_DEVICE_ORDER" if order else "env.CUDA_VISIBLE_DEVICES"),
            evidence=f"{', '.join(models)}; CUDA_DEVICE_ORDER {f'is {order}' if order else 'is not set'}",
            why="By default CUDA puts the fastest card first, nvidia-smi the lowest PCI address; device 0 is then "
            "another card than the one meant.",
            fix=(f"say the order:\n{paste.variable(workload, 'CUDA_DEVICE_ORDER', 'PCI_BUS_ID')}",),
        )


def _seen_cards(workload: Workload, host: Host) -> tuple[Accelerator, ...]:
    """Cards that the process will count; none when that is not known, or when it is in a cluster's hands."""
    grant = granted(workload, host, Vendor.NVIDIA)
    here = cards(host, Vendor.NVIDIA)
    if grant is None or workload.pod is not None or "CUDA_DEVICE_ORDER" in workload.env_sources:
        return ()
    if grant.everything:
        return here
    found = [card_of(name, Vendor.NVIDIA, host) for name in grant.ids]
    if grant.ids:
        return tuple(card for card in found if card is not None)
    return here[: grant.count or 0]


def _uses_cuda(env: Mapping[str, str]) -> bool:
    """An empty mask hides every card: nothing is left to confuse."""
    return env.get("CUDA_VISIBLE_DEVICES", "unset") not in ("", "-1")
