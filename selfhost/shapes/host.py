"""Facts of one machine, each with how it is known."""

from dataclasses import dataclass, field
from enum import StrEnum

from selfhost.shapes.fact import Fact, Known, Unknown, Vendor
from selfhost.shapes.surroundings import Surroundings

__all__ = ["Fact", "Known", "Unknown", "Vendor"]


class Support(StrEnum):
    """Whether a supported engine build has compiled code for this device."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNode:
    """One device file that a card is used through, and what opening it for reading and writing said."""

    path: str
    opened: str
    """`ok` or an errno name: ENOENT is not here, EPERM is not allowed by the device cgroup, EACCES is the file mode."""
    mode: int = 0
    gid: int = 0


class Partitioning(StrEnum):
    """How one card is cut, or which part of one this is."""

    NONE = "none"
    MIG = "mig"
    COMPUTE = "compute partition"
    """AMD: SPX is whole; DPX, TPX, QPX, CPX are parts."""
    TILE = "tile"
    VGPU = "vgpu"
    SRIOV_VF = "sr-iov vf"
    PASSTHROUGH = "passthrough"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One slice of a card that is allocated by itself (a MIG device). Memory in bytes."""

    name: str
    """Profile: `3g.40gb`, `1c.3g.71gb`."""
    uuid: str = ""
    memory: Fact[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A process that holds memory of the card. Bytes."""

    pid: int
    name: str
    memory: Fact[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device as the kernel and the driver present it. Memory in bytes.

    `present`, `openable` and `usable` are three separate facts: on the bus, granted to this process, answering compute.
    """

    index: int
    vendor: Vendor
    name: str
    pci: str = ""
    uuid: str = ""
    arch: Fact[str]
    """`sm_89`, `gfx942`, `bmg`."""
    memory_total: Fact[int]
    memory_free: Fact[int]
    support: Support
    support_reason: str
    present: Fact[bool]
    openable: Fact[bool]
    usable: Fact[bool]
    nodes: tuple[DeviceNode, ...] = ()
    """Every node that must open, in the order in which they were tried."""
    unified: bool = False
    """The card computes in the machine's own memory (GB10, Jetson, APU)."""
    kernel_driver: str = ""
    """What the PCI function is bound to: `nvidia`, `nouveau`, `vfio-pci`, `amdgpu`, `xe`."""
    driver_version: str = ""
    """As the card's own tool gives it; empty when there was no answer."""
    device_id: str = ""
    """PCI device id, four hexadecimal digits."""
    integrated: bool = False
    """Graphics inside a processor (an iGPU). A big APU such as Strix Halo is integrated and yet computes."""
    partitioning: Partitioning = Partitioning.NONE
    partition_mode: str = ""
    """`Enabled` (MIG), `CPX/NPS4`, `GRID A100-10C`."""
    partitions: tuple[Partition, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    tool_index: dict[str, int] = field(default_factory=dict)
    """The number that each tool gives this card: `nvidia-smi`, `amd-smi`, `rocm-smi`, `hip`, `level-zero`.

    They differ; none is an index of ours and none may stand for another.
    """
    numa_node: int | None = None
    fabric: str = ""
    """NVSwitch fabric as NVML or nvidia-smi gives it, `Completed/Success`; empty where there is none."""
    link_group: str = ""
    """Cards of one group are directly linked: the XGMI hive, the NVLink clique."""
    memory_used: Fact[int] = field(default_factory=lambda: Unknown("not read"))
    pcie_link: str = ""
    """As it runs now, of what card and slot can do: `16.0 GT/s x16 of 32.0 GT/s x16`."""
    licence: str = ""
    """vGPU: `Licensed`, `Unlicensed (Restricted)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDevice:
    """One display, 3D or processing-accelerator function on the PCI bus (class 0x03xx or 0x12xx)."""

    address: str
    vendor_id: str
    device_id: str
    class_id: str
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """`cores` is what this process may use: affinity and the smallest cgroup quota of all ancestors."""

    model: str
    architecture: str
    cores: Fact[float]
    cores_online: int
    features: tuple[str, ...]
    """Instruction sets that engines care about: avx2, avx512f, avx512_bf16, avx512_vnni, amx_bf16, asimd, sve, bf16."""
    numa_nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes. `limit` is the smallest cgroup memory limit of all ancestors, or the total without one."""

    total: Fact[int]
    available: Fact[int]
    limit: Fact[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One file system by the path that was asked about. Bytes."""

    path: str
    total: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Nesting:
    """One layer around this process, innermost first, with what proves it."""

    label: str
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How two cards reach each other, by their `Accelerator.index`: `NV4`, `XGMI`, `PIX`, `PHB`, `NODE`, `SYS`."""

    a: int
    b: int
    kind: str
    peer_access: str = ""
    """`OK`, or why not: `GNS` (the card does not), `CNS` (the chipset does not)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What `detect` found."""

    os: str
    kernel: str
    python: str
    cpu: Cpu
    memory: Memory
    disks: tuple[Disk, ...] = ()
    pci: tuple[PciDevice, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    nesting: tuple[Nesting, ...] = ()
    driver: Fact[str] = field(default_factory=lambda: Unknown("no accelerator driver was looked for"))
    """NVIDIA driver version as the kernel module reports it."""
    links: tuple[Link, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    """Only variables that select or grant devices, by hosts/visible_env; never the whole environment."""
    surroundings: Surroundings | None = None
    """None until it was asked for (`detect(…, wide=True)`): `up` and `plan` do not need it."""

    @property
    def usable_accelerators(self) -> tuple[Accelerator, ...]:
        return tuple(
            card
            for card in self.accelerators
            if card.support is Support.SUPPORTED and isinstance(card.usable, Known) and card.usable.value
        )
