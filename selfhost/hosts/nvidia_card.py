"""One NVIDIA card as an Accelerator: what the bus, the kernel module, the nodes and the driver's tools say of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from selfhost.core.system import System
from selfhost.hosts.engine_support import support
from selfhost.hosts.glance import glance, number
from selfhost.hosts.nodes import openable
from selfhost.hosts.nvidia_proc import uuid_of
from selfhost.hosts.nvidia_reading import NOT_SAID, VGPU_HOST, Answer, Reading
from selfhost.hosts.nvidia_stack import is_vgpu_host
from selfhost.hosts.pci import BUS
from selfhost.hosts.pci_table import lookup
from selfhost.shapes.host import (
    Accelerator,
    DeviceNode,
    Fact,
    Known,
    Partition,
    Partitioning,
    PciDevice,
    Unknown,
    Vendor,
)

VENDOR_ID = "10de"
# `GRID A100-20C`, `NVIDIA L40S-24Q`, MIG-backed `GRID A100-1-10C`: a slice of a card that a hypervisor hands out.
_VGPU_NAME = re.compile(r"\b[A-Z][A-Z0-9]*\d\w*-(?:\d-)?\d+[ABCQ]$")
# Chips whose cards have no memory of their own, as NVML names them; the driver of one of them may report a figure.
_UNIFIED_NAME = re.compile(r"\bGB10\b|\(nvgpu\)|\bThor\b|\bOrin\b|\bXavier\b")
_SHARES = "it shares the machine's memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Everything known about one card before it is judged."""

    answer: Answer
    machine: str
    """The processor's architecture: engine builds differ by it."""
    proof: str
    nodes: tuple[DeviceNode, ...]
    device: PciDevice | None = None
    reading: Reading | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    """The kernel module's `information`."""
    fallback_name: str = ""
    fallback_arch: str = ""
    integrated: bool = False


def accelerator(system: System, of: Sources) -> Accelerator:
    reading = of.reading or Reading(tool="nvidia-smi")
    device_id = of.device.device_id if of.device else reading.device_id
    row = lookup(VENDOR_ID, device_id)
    arch = _arch(reading, of.fallback_arch or (row.arch if row else ""), device_id)
    verdict, reason = support("nvidia", arch, architecture=of.machine)
    name = reading.name or of.written.get("Model", "") or of.fallback_name or (row.name if row else "")
    address = of.device.address if of.device else reading.bus_id
    opened = openable(of.nodes)
    unified = _is_unified(reading, name, integrated=of.integrated or bool(row and row.integrated))
    cut, mode = _cut(system, reading, name, address)
    return Accelerator(
        index=0,
        vendor=Vendor.NVIDIA,
        name=name or f"NVIDIA {device_id or 'card'}",
        pci=address,
        uuid=reading.uuid or uuid_of(of.written),
        arch=arch,
        memory_total=_memory(of, reading.memory_total, unified=unified),
        memory_free=_memory(of, reading.memory_free, unified=unified),
        memory_used=_memory(of, reading.memory_used, unified=unified),
        support=verdict,
        support_reason=reason,
        present=Known(value=True, how=of.proof),
        openable=opened,
        usable=_usable(opened, of, address),
        nodes=of.nodes,
        unified=unified,
        integrated=of.integrated or bool(row and row.integrated),
        kernel_driver=of.device.driver if of.device else "",
        driver_version=reading.driver or (of.answer.driver if of.reading else ""),
        device_id=device_id,
        partitioning=cut,
        partition_mode=mode,
        partitions=_partitions(reading),
        tenants=reading.tenants or (),
        tool_index={} if reading.index is None else {"nvidia-smi": reading.index},
        numa_node=_numa_node(system, address),
        pcie_link=_pcie(system, address),
        fabric=reading.fabric,
        link_group=reading.clique,
        licence="" if reading.licence == "N/A" else reading.licence,
    )


def _arch(reading: Reading, from_table: str, device_id: str) -> Fact[str]:
    if isinstance(reading.arch, Known):
        return reading.arch
    if from_table:
        return Known(from_table, "table of device ids")
    return Unknown(f"device id {device_id or 'unknown'} is in no table of this version")


def _is_unified(reading: Reading, name: str, *, integrated: bool) -> bool:
    """By kind first: one driver of the GB10 answers [N/A] for its memory, another the machine's total."""
    if integrated or _UNIFIED_NAME.search(name):
        return True
    own = reading.mig != "Enabled" and not reading.virtualization.startswith("Host V")
    return own and _is_not_available(reading.memory_total)


def _is_not_available(value: Fact[int]) -> bool:
    return isinstance(value, Unknown) and bool(re.search(r"answers \[?(N/A|Not Supported)", value.reason))


def _memory(of: Sources, value: Fact[int], *, unified: bool) -> Fact[int]:
    if of.reading is None:
        return Unknown(f"the chip has no memory of its own: {_SHARES}") if unified else silent(of.answer)
    if of.reading.mig == "Enabled":
        return Unknown("MIG is on: the memory belongs to its slices")
    if unified and isinstance(value, Known):
        return Unknown(f"{value.how} answers the machine's own figure: {_SHARES}")
    if _is_not_available(value) and isinstance(value, Unknown):
        return Unknown(f"{value.reason}: {_SHARES}") if unified else value
    return value


def silent(answer: Answer) -> Unknown:
    """Why the driver's tools say nothing about a card."""
    if answer.cards and answer.remarks:
        return Unknown(f"{answer.cards[0].tool} does not list this card: {answer.remarks[0]}")
    return Unknown(answer.failure or "nvidia-smi does not list this card")


def _usable(opened: Fact[bool], of: Sources, address: str) -> Fact[bool]:
    if isinstance(opened, Known) and not opened.value:
        return Known(value=False, how=f"not openable: {opened.how}")
    said = of.answer.faults.get(address, "")
    if of.reading is None:
        return Unknown(f"nvidia-smi cannot reach this card: {said}") if said else silent(of.answer)
    if is_vgpu_host(of.answer):
        return Known(value=False, how=VGPU_HOST)
    doubt = _doubt(of.reading, of.answer, said)
    count = len(of.reading.slices or ())
    cut = f" with {count} MIG {'instance' if count == 1 else 'instances'}" if of.reading.mig == "Enabled" else ""
    return Unknown(doubt) if doubt else Known(value=True, how=f"{of.reading.tool} lists it{cut}")


def _doubt(reading: Reading, answer: Answer, said: str) -> str:
    """Why a card that is listed may yet not compute."""
    if reading.fault or said:
        return f"{reading.tool} lists it, and it does not answer: {reading.fault or said}"
    cuda = answer.cuda.reason if isinstance(answer.cuda, Unknown) else ""
    if "ERR!" in cuda:
        return "nvidia-smi lists it, and the CUDA library does not answer: CUDA Version: ERR!"
    if "Not Found" in cuda:
        return "nvidia-smi lists it, and the CUDA library is not here: CUDA Version: Not Found"
    return _mig(reading) if reading.mig == "Enabled" else ""


def _mig(reading: Reading) -> str:
    """A card in MIG mode computes in its instances and in nothing else."""
    if any(part.uuid or part.memory is not NOT_SAID for part in reading.slices or ()):
        return ""
    if reading.slices:
        return "MIG is on, and its GPU instances are listed without what computes in them"
    if reading.slices is not None:
        return "MIG is on and no instance was made: there is nothing to compute on"
    return "MIG is on, and nothing that was asked lists its instances"


def _cut(system: System, reading: Reading, name: str, address: str) -> tuple[Partitioning, str]:
    """How the card is cut, or which part of one this is."""
    if reading.virtualization == "VGPU" or (not reading.virtualization and _VGPU_NAME.search(name)):
        return Partitioning.VGPU, name
    if reading.mig == "Enabled":
        return Partitioning.MIG, "Enabled"
    if reading.virtualization == "Pass-Through":
        return Partitioning.PASSTHROUGH, "Pass-Through"
    if address and _is_virtual_function(system, address):
        return Partitioning.SRIOV_VF, ""
    return Partitioning.NONE, reading.virtualization if reading.virtualization.startswith("Host V") else reading.mig


def _is_virtual_function(system: System, address: str) -> bool:
    try:
        system.readlink(f"{BUS}/{address}/physfn")
    except OSError:
        return False
    return True


def _partitions(reading: Reading) -> tuple[Partition, ...]:
    """Slices; `-q` alone gives no profile, and its number of the GPU instance is all there is for a name."""
    return tuple(
        Partition(
            name=part.profile or f"GPU instance {part.instance}",
            uuid=part.uuid,
            memory=Unknown("only the list of slices was read") if part.memory is NOT_SAID else part.memory,
        )
        for part in reading.slices or ()
    )


def _pcie(system: System, address: str) -> str:
    """`16.0 GT/s x16 of 32.0 GT/s x16`. An idle card runs its link slowly to save power."""
    base = f"{BUS}/{address}"
    now, best = (
        (glance(system, f"{base}/{kind}_link_speed").removesuffix(" PCIe"), glance(system, f"{base}/{kind}_link_width"))
        for kind in ("current", "max")
    )
    known = address and "GT/s" in now[0] and now[1].isdecimal() and best[1].isdecimal()
    return f"{now[0]} x{now[1]} of {best[0]} x{best[1]}" if known else ""


def _numa_node(system: System, address: str) -> int | None:
    """-1 is how the kernel says that there is but one, or that nobody told it."""
    node = number(glance(system, f"{BUS}/{address}/numa_node")) if address else None
    return None if node is None or node < 0 else node
