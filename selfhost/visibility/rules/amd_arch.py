"""AMD: whether the image has code for this card, and what a part of a partitioned card is."""

import re
from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Accelerator, Host, Known, Partitioning, Vendor
from selfhost.shapes.workload import Form, Workload
from selfhost.visibility.allocation import granted
from selfhost.visibility.cluster import allocatable
from selfhost.visibility.engine_size import value_of
from selfhost.visibility.images import image_archs, vendor_of
from selfhost.visibility.nodes import cards, in_a_container, key_of, render_nodes
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule
from selfhost.visibility.rules.amd_nodes import is_amd

VLLM_ROCM = "https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html"
K8S_PLUGIN = "https://instinct.docs.amd.com/projects/k8s-device-plugin/en/latest"
_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_HUB = {
    Vendor.NVIDIA: "vllm/vllm-openai",
    Vendor.AMD: "vllm/vllm-openai-rocm",
    Vendor.INTEL: "vllm/vllm-openai-xpu",
}
_DXG = (
    ("--device", "/dev/dxg"),
    ("-e", "HSA_ENABLE_DXG_DETECTION=1"),
    ("-v", "/usr/lib/wsl/lib/libdxcore.so:/usr/lib/libdxcore.so"),
)
_DEPRECATED = ("rocm/vllm", "rocm/vllm-dev")


def _arch(card: Accelerator) -> str:
    return card.arch.value if isinstance(card.arch, Known) else ""


def _family(arch: str) -> str:
    """`gfx1151` is of 11, `gfx942` of 9: the part that an override must not cross."""
    return arch.removeprefix("gfx")[:-2]


def _serving(host: Host | None) -> tuple[Accelerator, ...]:
    """AMD cards that a model would run on: graphics of a processor only where there is nothing else."""
    found = cards(host, Vendor.AMD)
    return tuple(card for card in found if not card.integrated) or found


@rule("DV047", Severity.WARNING, source="https://github.com/ollama/ollama/issues/8851")
def architecture_is_overridden(workload: Workload, host: Host | None) -> Iterator[Found]:
    value = workload.env.get(_OVERRIDE, "")
    archs = sorted({_arch(card) for card in cards(host, Vendor.AMD) if _arch(card)})
    if not value or not archs or not re.fullmatch(r"\d+\.\d+\.\d+", value):
        return
    known = image_archs(workload.image)
    reasons = []
    if len(archs) > 1:
        reasons.append(f"it is said of every card at once, and here are {' and '.join(archs)}")
    if known and all(arch in known for arch in archs):
        reasons.append(f"the image has code for {archs[0]} itself")
    if any(value.split(".")[0] != _family(arch) for arch in archs):
        reasons.append(f"it leaves the family of {archs[0]}")
    if reasons:
        yield Found(
            title=f"{_OVERRIDE}={value} makes ROCm take {archs[0]} for another chip",
            place=place(workload, f"env.{_OVERRIDE}"),
            evidence="; ".join(reasons),
            why="AMD means it for debugging inside one family. Elsewhere kernels of another chip run on this one: "
            "memory access faults, or wrong answers.",
            fix=(f"take {_OVERRIDE} out, and use an image that has code for {archs[0]}",),
        )


@rule("DV048", Severity.ERROR, source=VLLM_ROCM)
def image_lacks_the_architecture(workload: Workload, host: Host | None) -> Iterator[Found]:
    known = image_archs(workload.image)
    if vendor_of(workload.image) is not Vendor.AMD or not known or workload.env.get(_OVERRIDE):
        return
    archs = {_arch(card) for card in _serving(host)} - {""}
    if archs and not archs & known:
        yield Found(
            title=f"{workload.image} has no code for {', '.join(sorted(archs))}",
            place=place(workload, "image"),
            evidence=f"compiled for {', '.join(sorted(known))}",
            why="A ROCm image carries kernels for the chips it was compiled for; any other answers `HIP error: invalid "
            "device function`.",
            fix=("use an image that was compiled for this chip, or llama.cpp, which is built for more of them",),
        )


@rule("DV049", Severity.ERROR, source=VLLM_ROCM)
def image_of_another_vendor(workload: Workload, host: Host | None) -> Iterator[Found]:
    wanted = vendor_of(workload.image)
    handed = _handed_in(workload)
    if wanted is not None and handed and wanted not in handed and not workload.privileged:
        yield _of_another(workload, wanted, next(iter(handed)), next(iter(handed.values())))
        return
    if host is None or wanted is None or workload.form is Form.POD:
        return
    here = {card.vendor for card in host.accelerators if not card.integrated and card.vendor is not Vendor.OTHER}
    if here and wanted not in here:
        names = ", ".join(card.name for card in host.accelerators if card.vendor in here)
        yield _of_another(workload, wanted, min(here), names)


def _of_another(workload: Workload, wanted: Vendor, here: Vendor, seen: str) -> Found:
    return Found(
        title=f"{workload.image} is for {_CALLED[wanted]} cards; what it gets is {_CALLED[here]}'s",
        place=place(workload, "image"),
        evidence=seen,
        why="An engine image carries the runtime of one vendor; on another's card it finds no device.",
        fix=(f"use the image for this card:\n{_HUB[here]}",),
    )


_CALLED = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel"}


def _handed_in(workload: Workload) -> dict[Vendor, str]:
    """Whose cards the text itself lets in, and by what. Render nodes and an unnamed driver are nobody's own."""
    found = {vendor: grant.by for vendor in _HUB if (grant := granted(workload, None, vendor)) is not None}
    if found.get(Vendor.INTEL) in ("/dev/dri", "render nodes"):
        del found[Vendor.INTEL]
    unnamed = any(not request.driver for request in workload.requests)
    return {} if unnamed or workload.form in (Form.PROCESS, Form.BATCH) else found


@rule("DV049b", Severity.WARNING, source=VLLM_ROCM)
def image_is_deprecated(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    name = workload.image.partition("@")[0].partition(":")[0].removeprefix("docker.io/")
    if name in _DEPRECATED:
        yield Found(
            title=f"{name} is no longer the image that vLLM publishes for AMD",
            place=place(workload, "image"),
            evidence=f"image {workload.image}",
            why="vLLM's own image took its place in January 2026; this one also starts a shell instead of the server.",
            fix=("use vLLM's image, by an exact tag:\nvllm/vllm-openai-rocm",),
        )


@rule(
    "DV052",
    Severity.ERROR,
    source=f"{K8S_PLUGIN}/user-guide/configuration.html",
)
def partitions_have_their_own_resource(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or host.surroundings is None or workload.pod is None or "amd.com/gpu" not in workload.pod.limits:
        return
    offered = [
        resource
        for node in host.surroundings.nodes
        for resource, count in allocatable(node).items()
        if resource.startswith("amd.com/") and count != "0"
    ]
    parts = sorted({resource for resource in offered if re.fullmatch(r"amd\.com/[a-z]+_nps\d", resource)})
    if parts and "amd.com/gpu" not in offered:
        yield Found(
            title=f"no node offers amd.com/gpu; they offer {', '.join(parts)}",
            place=place(workload, "limits.amd.com/gpu"),
            evidence="allocatable of the nodes; the device plugin names resources by partition (mixed)",
            why="The scheduler matches names. With partitioned cards under the strategy `mixed` the plain name is not "
            "there, so the pod stays Pending.",
            fix=(f"ask for the partition:\nresources: {{limits: {{{parts[0]}: 1}}}}",),
        )


@rule("DV053", Severity.WARNING, source="https://github.com/ROCm/amdsmi/issues/100")
def part_of_a_card(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not in_a_container(workload) or not is_amd(workload):
        return
    parts = {
        node.path: card
        for card in cards(host, Vendor.AMD)
        if card.partitioning is Partitioning.COMPUTE and not card.partition_mode.upper().startswith("SPX")
        for node in card.nodes
        if "renderD" in node.path
    }
    named = [path for path in render_nodes(workload) if path in parts]
    if named:
        card = parts[named[0]]
        yield Found(
            title=f"{named[0]} is a part of a card ({card.partition_mode}), not a card",
            place=place(workload, key_of(workload, named[0])),
            evidence=f"{card.name} at {card.pci}; {len(parts)} parts here",
            why="A partitioned card owns several render nodes, each with its share of the memory; numbers do not "
            "follow the cards, and they change with the mode.",
            fix=(
                "look which node is which part:\nselfhost detect",
                "or undo the parts, while nothing uses the cards:\nsudo amd-smi set --compute-partition SPX",
            ),
        )


@rule("DV055", Severity.INFO, source="https://github.com/vllm-project/vllm/blob/main/vllm/platforms/rocm.py")
def fp8_of_another_kind(workload: Workload, host: Host | None) -> Iterator[Found]:
    """MI300's FP8 is FNUZ, checkpoints are OCP: vLLM converts on its own paths only."""
    cache = value_of(workload.argv, ("--kv-cache-dtype",)) or ""
    if not cache.startswith("fp8") or not any("fp8" in word.lower() for word in workload.argv if "/" in word):
        return
    old = [card for card in cards(host, Vendor.AMD) if _arch(card).startswith("gfx94")]
    if old:
        yield Found(
            title=f"{old[0].name} computes FP8 in a form of its own (FNUZ)",
            place=place(workload, "argv"),
            evidence=f"{_arch(old[0])}, FP8 weights and FP8 KV cache",
            why="Its largest number is 240 where the checkpoint's is 448. vLLM rescales on its own paths; a custom "
            "attention or quantization path that does not gives wrong answers without an error.",
            fix=("keep to vLLM's own FP8 paths, and compare answers with the BF16 checkpoint once",),
        )


@rule("DV056", Severity.ERROR, source="https://github.com/vllm-project/vllm/issues/33308")
def ray_masks_again(workload: Workload, host: Host | None) -> Iterator[Found]:
    by_ray = value_of(workload.argv, ("--distributed-executor-backend",)) == "ray"
    masked = [name for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES") if workload.env.get(name)]
    amd = is_amd(workload) or bool(masked) or (bool(cards(host, Vendor.AMD)) and not cards(host, Vendor.NVIDIA))
    names = [f"RAY_EXPERIMENTAL_NOSET_{layer}_VISIBLE_DEVICES" for layer in ("ROCR", "HIP", "CUDA")]
    if not by_ray or not amd or any(workload.env.get(name) for name in names):
        return
    yield Found(
        title=f"{workload.label} lets Ray mask AMD cards for workers that mask them again",
        place=place(workload, f"env.{masked[0]}" if masked else "argv"),
        evidence="--distributed-executor-backend ray, no RAY_EXPERIMENTAL_NOSET_…_VISIBLE_DEVICES"
        + (f", {masked[0]}={workload.env[masked[0]]}" if masked else ""),
        why="Ray hides all cards but one from each worker; the engine then picks its rank's number out of what is "
        "left, which is number 0 only: `HIP error: invalid device ordinal`.",
        fix=("keep Ray from masking:\n" + options(workload, *(("-e", f"{name}=1") for name in names)),),
        severity=Severity.ERROR if masked else Severity.WARNING,
    )


@rule("DV073b", Severity.ERROR, source="https://github.com/ROCm/ROCm/issues/4062")
def no_kfd_under_wsl(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or not any(layer.label == "wsl2" for layer in host.nesting) or not in_a_container(workload):
        return
    if "/dev/kfd" in {device.source for device in workload.devices}:
        yield Found(
            title=f"{workload.label} asks for /dev/kfd, which WSL2 does not have",
            place=place(workload, key_of(workload, "/dev/kfd")),
            evidence="/dev/kfd handed in under WSL2",
            why="Windows hands cards into WSL2 through /dev/dxg; there is no amdgpu driver and none of its nodes.",
            fix=(f"hand in what WSL2 has, with its library:\n{options(workload, *_DXG)}",),
        )
