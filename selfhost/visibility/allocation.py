"""Which cards a text hands to a workload: the strongest mechanism that it names. Pure.

What is granted decides what a process counts from 0; what a mask selects comes behind it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from selfhost.shapes.host import Accelerator, Host, Known, Partitioning, Vendor
from selfhost.shapes.workload import DeviceRequest, EnvSource, Form, Workload
from selfhost.visibility.images import known, vendor_of
from selfhost.visibility.nodes import CDI_KIND, RESOURCE_PREFIX, cards, handed_in, render_nodes, whole_dri

_NODE: Final = re.compile(r"/dev/nvidia(\d+)\Z")
_MIG: Final = re.compile(r"(?:MIG-.+|mig\d+:\d+|\d+:\d+)\Z")
_GRES: Final = re.compile(
    r"(?:gres/)?(?:gpu(?:[:=][A-Za-z][\w.-]*)?(?:[:=](?P<typed>\d+))?|(?:[A-Za-z][\w.-]*:)?(?P<plain>\d+))\Z"
)
_GRANTING_ENV: Final = {Vendor.NVIDIA: "NVIDIA_VISIBLE_DEVICES", Vendor.AMD: "AMD_VISIBLE_DEVICES"}
_DRIVERS: Final = {
    Vendor.NVIDIA: ("", "nvidia", "nvidia.cdi", "nvidia.runtime-hook"),
    Vendor.AMD: ("amd",),
    Vendor.INTEL: (),
}
NOTHING: Final = ("void", "none", "")
NOT_CARDS: Final = ("gpumem", "gpumem-percentage", "gpucores", "monitoring", "i915_monitoring", "xe_monitoring")
"""Resources beside a card: shares that HAMi hands out, and Intel's right to look at all cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """`count` is None when the text and the host do not tell it; `ids` are names as the text gives them."""

    vendor: Vendor
    count: int | None
    everything: bool = False
    ids: tuple[str, ...] = ()
    by: str
    """As a person calls it: `--gpus`, `CDI`, `nvidia.com/gpu`."""
    key: str = ""
    mig: bool = False

    @property
    def subset(self) -> bool:
        """Certain cards or a certain number of them, not all."""
        return not self.everything and self.count is not None


def granted(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    """Cards of `vendor`; None when the text grants none, or when nothing can be said of it."""
    if workload.form in (Form.PROCESS, Form.BATCH) and not workload.image:
        here = cards(host, vendor)
        return Grant(vendor=vendor, count=len(here), everything=True, by="this machine") if here else None
    for mechanism in (_resources, _job, _requests, _cdi, _runtime, _nodes):
        found = mechanism(workload, host, vendor)
        if found is not None:
            return found
    return None


def any_grant(workload: Workload, host: Host | None) -> Grant | None:
    """Of whichever vendor the text names."""
    return next((found for vendor in RESOURCE_PREFIX if (found := granted(workload, host, vendor))), None)


def resources(workload: Workload, vendor: Vendor) -> dict[str, str]:
    """Cards that a pod's container asks for, by resource; limits before requests."""
    if workload.pod is None:
        return {}
    asked = {**workload.pod.requests, **workload.pod.limits}
    prefix = RESOURCE_PREFIX[vendor]
    return {
        name: amount
        for name, amount in asked.items()
        if name.startswith(prefix) and name.removeprefix(prefix) not in NOT_CARDS
    }


def asks_scheduler(workload: Workload) -> bool:
    """Whether a pod's container asks for any card, by a resource or a claim."""
    if workload.pod is None:
        return False
    asked = (amount for vendor in RESOURCE_PREFIX for amount in resources(workload, vendor).values())
    return bool(workload.pod.claims) or any(amount.strip() not in ("0", "") for amount in asked)


def _resources(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    asked = resources(workload, vendor)
    named = [name for name in asked if name.partition("=")[0] == CDI_KIND[vendor] and "=" in name]
    if named:  # Podman reads a pod's limits as CDI names: `nvidia.com/gpu=all: 1`
        ids = tuple(name.partition("=")[2] for name in named)
        return _named(ids, vendor, host, by="CDI", key=f"limits.{named[0]}")
    if asked:
        amounts = [int(amount) if amount.isdecimal() else None for amount in asked.values()]
        count = None if None in amounts else sum(amount or 0 for amount in amounts)
        name = next(iter(asked))
        return Grant(
            vendor=vendor,
            count=count,
            by=name,
            key=f"limits.{name}",
            mig=any("/mig-" in resource for resource in asked),
        )
    if workload.pod is not None and workload.pod.claims and vendor is _of_claims(workload):
        return Grant(vendor=vendor, count=None, by="a resource claim", key="claims.0", mig=_claims_mig(workload))
    return None


def _job(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    """Devices of a batch job, as Slurm confines it to them. Whose they are, only the image tells."""
    del host
    if workload.form is not Form.BATCH or vendor_of(workload.image) not in (vendor, None):
        return None
    for name in ("gpus-per-node", "gpus_per_node", "gres", "gpus"):
        match = _GRES.match(workload.job.get(name, ""))
        if match:
            count = int(match["typed"] or match["plain"] or 1)
            return Grant(vendor=vendor, count=count, by="the job", key=f"job.{name}")
    return None


def _of_claims(workload: Workload) -> Vendor:
    classes = " ".join(workload.pod.claim_classes) if workload.pod else ""
    return Vendor.AMD if "amd.com" in classes else Vendor.INTEL if "intel.com" in classes else Vendor.NVIDIA


def _claims_mig(workload: Workload) -> bool:
    return bool(workload.pod and any(name.startswith("mig.") for name in workload.pod.claim_classes))


def is_for(request: DeviceRequest, vendor: Vendor, host: Host | None) -> bool:
    """Whether a request that goes by Docker's own drivers is for `vendor`. An unnamed driver is the machine's."""
    if request.driver not in _DRIVERS[vendor]:
        return not request.driver and vendor is Vendor.AMD and bool(cards(host, vendor)) and not _has_nvidia(host)
    return vendor is not Vendor.NVIDIA or bool(request.driver) or _has_nvidia(host) or not cards(host, Vendor.AMD)


def _has_nvidia(host: Host | None) -> bool:
    return bool(cards(host, Vendor.NVIDIA))


def _requests(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    for number, request in enumerate(workload.requests):
        key = request.key or f"requests.{number}"
        by = f"`{request.spelling}`" if request.spelling in ("deploy", "gpus") else request.spelling or "--gpus"
        if request.driver == "cdi":
            names = [text.partition("=") for text in request.ids]
            ids = tuple(name for kind, equals, name in names if equals and kind == CDI_KIND[vendor])
            if ids:
                return _named(ids, vendor, host, by="CDI", key=key)
        elif is_for(request, vendor, host) and not any("$" in text for text in request.ids):
            if request.ids and request.count is not None:
                continue  # docker refuses it (DV012), so it grants nothing
            if request.ids:
                return _named(request.ids, vendor, host, by=by, key=key)
            if request.count == -1:
                return _named(("all",), vendor, host, by=by, key=key)
            if request.count:
                return Grant(vendor=vendor, count=request.count, by=by, key=key)
    return None


def _cdi(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    found = [name for name in workload.cdi if name.kind == CDI_KIND[vendor]]
    if not found or any("$" in name.name for name in found):
        return None
    return _named(tuple(name.name for name in found), vendor, host, by="CDI", key=found[0].key or "cdi.0")


def _runtime(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    variable = _GRANTING_ENV.get(vendor)
    if variable is None or workload.pod is not None:
        return None
    named = workload.runtime == vendor.value
    if variable in workload.env:
        text = workload.env[variable]
        if text.strip() in NOTHING or (not named and workload.runtime):
            return None
        ids = tuple(part.strip() for part in text.split(",") if part.strip())
        plain = tuple(part.rpartition("=")[2] for part in ids)
        return _named(plain, vendor, host, by=variable, key=f"env.{variable}")
    image = known(workload.image) if workload.image else None
    if named and variable not in workload.env_sources and image is not None and image.grants_all:
        return _named(("all",), vendor, host, by=f"runtime {workload.runtime}", key="runtime")
    return None


def _nodes(workload: Workload, host: Host | None, vendor: Vendor) -> Grant | None:
    if vendor is Vendor.NVIDIA:
        minors = dict(nvidia_nodes(workload))
        if not minors:
            return None
        return Grant(vendor=vendor, count=len(minors), by="device nodes", key=next(iter(minors.values())))
    is_amd = any(path == "/dev/kfd" for path, _ in handed_in(workload))
    if is_amd is not (vendor is Vendor.AMD):
        return None
    if whole_dri(workload):
        here = len(cards(host, vendor))
        return Grant(vendor=vendor, count=here or None, everything=True, by="/dev/dri", key="devices")
    render = render_nodes(workload)
    if not render or (vendor is Vendor.INTEL and vendor_of(workload.image) is not Vendor.INTEL):
        return None
    return Grant(vendor=vendor, count=len(set(render)), by="render nodes", key="devices")


def nvidia_nodes(workload: Workload) -> Iterator[tuple[int, str]]:
    """Minor numbers of the NVIDIA cards whose nodes are named one by one, and the keys of their spots."""
    for device in workload.devices:
        match = _NODE.match(device.source)
        if match:
            yield int(match[1]), device.key or "devices"


def _named(ids: tuple[str, ...], vendor: Vendor, host: Host | None, *, by: str, key: str) -> Grant:
    if "all" in ids:
        here = cards(host, vendor)
        cut = any(card.partitioning is Partitioning.MIG or card.partition_mode == "Enabled" for card in here)
        return Grant(vendor=vendor, count=None if cut or not here else len(here), everything=True, by=by, key=key)
    unique = tuple(dict.fromkeys(ids))
    same = _is_all(unique, vendor, host)
    return Grant(
        vendor=vendor, count=len(unique), everything=same, ids=unique, by=by, key=key, mig=any(map(is_mig, unique))
    )


def _is_all(ids: tuple[str, ...], vendor: Vendor, host: Host | None) -> bool:
    here = cards(host, vendor)
    return bool(here) and {id(card_of(name, vendor, host)) for name in ids} == {id(card) for card in here}


def is_mig(name: str) -> bool:
    """`MIG-<uuid>`, `0:1`, `mig0:1`."""
    return _MIG.match(name) is not None


def index_of(name: str) -> int | None:
    """The card's index when a name is a bare one, as `1`, `gpu1` or `1:0` (a slice of it)."""
    match = re.match(r"(?:gpu|mig)?(\d+)(?::\d+)?\Z", name)
    return int(match[1]) if match else None


def card_of(name: str, vendor: Vendor, host: Host | None) -> Accelerator | None:
    """The host's card by the name that a grant gives it: its index in the vendor's own tool, or its UUID."""
    here = cards(host, vendor)
    number = index_of(name)
    matches: Callable[[Accelerator], bool] = (
        (lambda card: number == tool_index(card)) if number is not None else lambda card: _same_uuid(card, name)
    )
    return next((card for card in here if matches(card)), None)


def tool_index(card: Accelerator) -> int:
    """The number that nvidia-smi gives a card, which is what the toolkit counts by."""
    return card.tool_index.get("nvidia-smi", card.index)


def _same_uuid(card: Accelerator, name: str) -> bool:
    return bool(name) and bool(card.uuid) and card.uuid.lower().startswith(name.lower())


def usable_count(host: Host, vendor: Vendor) -> int:
    """Cards that are not known to be closed or unsupported."""
    return sum(not isinstance(card.usable, Known) or card.usable.value for card in cards(host, vendor))


def passed_through(workload: Workload, variable: str) -> bool:
    return workload.env_sources.get(variable) is EnvSource.PASSED_THROUGH
