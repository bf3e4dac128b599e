"""`nvidia-smi -q -x`, of any generation of its document type. Cut output gives the cards that were whole."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from selfhost.hosts.nvidia_reading import (
    Reading,
    Slice,
    bus_address,
    clique,
    device_id,
    fabric,
    fault_in,
    mebibytes,
    mode,
    number,
    version,
)
from selfhost.shapes.host import Tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlAnswer:
    cards: tuple[Reading, ...] = ()
    driver: str = ""
    cuda: str = ""
    """As it is written: `13.0`, `Not Found`, `ERR!`."""
    serves_vgpus: bool = False
    remark: str = ""
    """What is missing of it."""


def read(text: str) -> XmlAnswer:
    """Cards in their order; `remark` says when the text ends early or describes fewer cards than it counts."""
    start = text.find("<nvidia_smi_log")
    if start < 0:
        return XmlAnswer()
    # Names of the document type lead outside, and a warning may stand before the first tag.
    seen = _Seen(text[start:])
    attached = seen.top.get("attached_gpus", "")
    cards = tuple(_card(gpu, position, _driver(seen.top)) for position, gpu in enumerate(seen.gpus))
    return XmlAnswer(
        cards=cards,
        driver=_driver(seen.top),
        cuda=version(seen.top.get("cuda_umd_version", "")) or seen.top.get("cuda_version", ""),
        serves_vgpus="vgpu_driver_capability" in seen.top,
        remark=_remark(len(cards), attached, is_cut=seen.is_cut),
    )


class _Seen:
    """Whole `gpu` elements and the plain elements above them, up to where the text ends or stops being XML."""

    def __init__(self, text: str) -> None:
        self.gpus: list[ET.Element] = []
        self.top: dict[str, str] = {}
        self.is_cut = True
        depth = 0
        for kind, element in _events(text):
            depth += 1 if kind == "start" else -1
            if kind == "end" and depth == 0:
                self.is_cut = False
            elif kind == "end" and depth == 1:
                if element.tag == "gpu":
                    self.gpus.append(element)
                else:
                    self.top[element.tag] = (element.text or "").strip()


def _events(text: str) -> Iterator[tuple[str, ET.Element]]:
    parser: ET.XMLPullParser[ET.Element] = ET.XMLPullParser(("start", "end"))
    # Fed in lines, so that what lies before a fault has been handed out when the fault is met.
    for line in text.splitlines(keepends=True):
        try:
            parser.feed(line)
            for event in parser.read_events():
                if len(event) == 2 and isinstance(event[1], ET.Element):
                    yield event[0], event[1]
        except ET.ParseError:
            return


def _driver(top: dict[str, str]) -> str:
    return version(top.get("kmd_version", "")) or version(top.get("driver_version", ""))


def _remark(found: int, attached: str, *, is_cut: bool) -> str:
    if attached.isdecimal() and int(attached) > found:
        return f"nvidia-smi -q -x describes {found} of {int(attached)} cards{': its output is cut off' * is_cut}"
    return "the output of nvidia-smi -q -x is cut off" if is_cut else ""


def _card(gpu: ET.Element, position: int, driver: str) -> Reading:
    say = _Sayer(gpu)
    total = say("fb_memory_usage/total")
    return Reading(
        tool="nvidia-smi",
        index=position,
        name=say("product_name"),
        uuid=say("uuid") if say("uuid").startswith(("GPU-", "MIG-")) else "",
        bus_id=bus_address(gpu.get("id", "")) or bus_address(say("pci/pci_bus_id")),
        device_id=device_id(say("pci/pci_device_id")),
        minor=number(say("minor_number")),
        memory_total=mebibytes(total),
        memory_free=mebibytes(say("fb_memory_usage/free")),
        memory_used=mebibytes(say("fb_memory_usage/used")),
        driver=driver,
        mig=mode(say("mig_mode/current_mig")),
        slices=_slices(gpu),
        virtualization=say("gpu_virtualization_mode/virtualization_mode"),
        licence=say("vgpu_software_licensed_product/license_status").partition(" (Expiry")[0],
        fabric=fabric(say("fabric/state"), say("fabric/status")),
        clique=clique(say("fabric/state"), say("fabric/clusterUuid"), say("fabric/cliqueId")),
        tenants=_tenants(gpu),
        fault=fault_in(say("product_name"), say("uuid"), total),
    )


class _Sayer:
    """The text at a path, stripped; empty when the generation does not have it."""

    def __init__(self, element: ET.Element) -> None:
        self._element = element

    def __call__(self, path: str) -> str:
        return (self._element.findtext(path) or "").strip()


def _slices(gpu: ET.Element) -> tuple[Slice, ...] | None:
    """None on drivers that do not list them; `mig_devices` holds the text `None` when there is none."""
    if gpu.find("mig_devices") is None:
        return None
    found: list[Slice] = []
    for position, device in enumerate(gpu.iterfind("mig_devices/mig_device")):
        say = _Sayer(device)
        found.append(
            Slice(
                index=position if number(say("index")) is None else int(say("index")),
                uuid=say("uuid") if say("uuid").startswith("MIG-") else "",
                memory=mebibytes(say("fb_memory_usage/total") or say("shared_fb_memory_usage/total")),
                instance=f"{say('gpu_instance_id')}/{say('compute_instance_id')}",
            )
        )
    return tuple(found)


def _tenants(gpu: ET.Element) -> tuple[Tenant, ...] | None:
    """Processes that compute (`C`, `C+G`, MPS's `M+C`); those that only draw are no tenants. None: not listed."""
    if gpu.find("processes") is None:
        return None
    found: list[Tenant] = []
    for process in gpu.iterfind("processes/process_info"):
        say = _Sayer(process)
        if "C" in say("type") and re.fullmatch(r"\d{1,10}", say("pid"), re.ASCII):
            used = mebibytes(say("used_memory"))
            found.append(Tenant(pid=int(say("pid")), name=say("process_name"), memory=used))
    return tuple(found)
