"""Which cards a node has, by the resources it offers and by the labels that the vendors' labellers give it. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from selfhost.hosts import cards
from selfhost.hosts.cluster_quantity import whole
from selfhost.hosts.pci_table import lookup
from selfhost.shapes.fact import Vendor
from selfhost.shapes.units import GIB, MIB

NVIDIA = "nvidia.com"
_MIG = re.compile(r"nvidia\.com/mig-(?P<profile>\d+g\.(?P<gib>\d+)gb(?:\.me)?)")
_AMD_PART = re.compile(r"amd\.com/(?P<mode>spx|dpx|tpx|qpx|cpx)_nps\d")
_AMD_PARTS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}
_SLICE_OF_PRODUCT = re.compile(r"-MIG-(?P<profile>\d+g\.\d+gb(?:\.me)?)\Z")
_INTEL_ID = re.compile(r"gpu\.intel\.com/device-id\.03\d\d-(?P<id>[0-9a-f]{4})\.(?:present|count)")
_CLOUD_NAMES = ("cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name",
                "eks.amazonaws.com/instance-gpu-name")  # fmt: skip
"""Where no labeller runs, or no node does yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardKind:
    """One kind of device that pods ask for by `resource`; a device class where claims hand it out.

    What is not known is empty or 0.
    """

    vendor: Vendor
    resource: str
    name: str = ""
    arch: str = ""
    memory_mib: int = 0
    """Of the card, the slice or the share, as far as a label or the table says it."""
    profile: str = ""
    """Of a MIG slice: `3g.40gb`."""
    shared: int = 1
    """So many pods share one card."""
    strategy: str = ""
    """`time-slicing`, `mps`."""
    driver: str = ""
    labelled: bool = False
    """The node has the labels by which a pod can ask for such a card."""


def cards_of(labels: Mapping[str, str], allocatable: Mapping[str, int]) -> Iterator[CardKind]:
    """One for each resource of which the node offers some."""
    for resource, count in allocatable.items():
        if not count:
            continue
        if resource in ("nvidia.com/gpu", "nvidia.com/gpu.shared"):
            yield _nvidia(resource, labels, count)
        elif match := _MIG.fullmatch(resource):
            yield _slice(resource, labels, match)
        elif resource == "amd.com/gpu" or _AMD_PART.fullmatch(resource):
            yield _amd(resource, labels)
        elif resource in ("gpu.intel.com/xe", "gpu.intel.com/i915"):
            yield _intel(resource, labels)


def _nvidia(resource: str, labels: Mapping[str, str], count: int) -> CardKind:
    product = labels.get(f"{NVIDIA}/gpu.product", "")
    shared = whole(labels.get(f"{NVIDIA}/gpu.replicas")) or 1
    if resource.endswith(".shared") and shared == 1:
        cards_here = whole(labels.get(f"{NVIDIA}/gpu.count"))
        shared = max(2, count // cards_here) if cards_here else 2
    strategy = labels.get(f"{NVIDIA}/gpu.sharing-strategy", "")
    sliced = _SLICE_OF_PRODUCT.search(product.removesuffix("-SHARED"))
    memory = whole(labels.get(f"{NVIDIA}/gpu.memory"))
    base = _base(labels)
    return CardKind(
        vendor=Vendor.NVIDIA,
        resource=resource,
        name=base.name,
        arch=base.arch,
        memory_mib=memory or (0 if sliced else base.memory_mib),
        profile=sliced["profile"] if sliced else "",
        shared=shared,
        strategy="" if strategy == "none" else strategy or ("time-slicing" if shared > 1 else ""),
        driver=_driver(labels),
        labelled=bool(memory),
    )


def _slice(resource: str, labels: Mapping[str, str], match: re.Match[str]) -> CardKind:
    memory = whole(labels.get(f"{resource}.memory"))
    base = _base(labels)
    return CardKind(
        vendor=Vendor.NVIDIA,
        resource=resource,
        name=base.name,
        arch=base.arch,
        memory_mib=memory or int(match["gib"]) * GIB // MIB,
        profile=match["profile"],
        driver=_driver(labels),
        labelled=bool(memory),
    )


def _base(labels: Mapping[str, str]) -> CardKind:
    """Name, architecture and memory of the whole card, by the labeller or by what the cloud calls it."""
    product = labels.get(f"{NVIDIA}/gpu.product", "").removesuffix("-SHARED")
    product = _SLICE_OF_PRODUCT.sub("", product)
    said = product or next((labels[key] for key in _CLOUD_NAMES if labels.get(key)), "")
    row = cards.named(said.replace("-", " ")) if said else None
    major, minor = (labels.get(f"{NVIDIA}/gpu.compute.{part}", "") for part in ("major", "minor"))
    return CardKind(
        vendor=Vendor.NVIDIA,
        resource="",
        name=product.replace("-", " ") if product else row.name if row else said,
        arch=f"sm_{major}{minor}" if major.isdecimal() and minor.isdecimal() else row.arch if row else "",
        memory_mib=row.memory // MIB if row else 0,
    )


def _driver(labels: Mapping[str, str]) -> str:
    full = labels.get(f"{NVIDIA}/cuda.driver-version.full", "")
    parts = (labels.get(f"{NVIDIA}/cuda.driver.{part}", "") for part in ("major", "minor", "rev"))
    return full or ".".join(part for part in parts if part)


def _amd(resource: str, labels: Mapping[str, str]) -> CardKind:
    said = _amd_label(labels, "product-name").replace("_", " ")
    found = lookup("1002", _amd_label(labels, "device-id").lower().removeprefix("0x"))
    row = cards.named(said) if said else cards.named(found.name) if found else None
    part = _AMD_PART.fullmatch(resource)
    parts = _AMD_PARTS[part["mode"]] if part else 1
    labelled = whole(_amd_label(labels, "vram").rstrip("B").replace("G", "Gi"))
    memory = (row.memory if row and row.memory else labelled) // parts
    return CardKind(
        vendor=Vendor.AMD,
        resource=resource,
        name=said or (found.name if found else ""),
        arch=found.arch if found else row.arch if row else "",
        memory_mib=memory // MIB,
        profile=part["mode"].upper() if part and parts > 1 else "",
        labelled=bool(labels.get("amd.com/gpu.product-name")),
    )


def _amd_label(labels: Mapping[str, str], name: str) -> str:
    """Older labellers write `beta.amd.com/gpu.…` too."""
    return labels.get(f"amd.com/gpu.{name}", labels.get(f"beta.amd.com/gpu.{name}", ""))


def _intel(resource: str, labels: Mapping[str, str]) -> CardKind:
    ids = [match["id"] for label in labels if (match := _INTEL_ID.fullmatch(label))]
    found = lookup("8086", ids[0]) if len(ids) == 1 else None
    said = labels.get("gpu.intel.com/product", "").replace("_", " ")
    row = cards.named(found.name if found else said) if found or said else None
    return CardKind(
        vendor=Vendor.INTEL,
        resource=resource,
        name=found.name if found else said or (row.name if row else ""),
        arch=found.arch if found else row.arch if row else "",
        memory_mib=row.memory // MIB if row else 0,
        labelled=bool(labels.get("gpu.intel.com/product")),
    )
