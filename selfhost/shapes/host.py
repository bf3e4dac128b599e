"""Facts of one machine, each with how it is known."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A value and the file, command or call it was read from."""

    value: T
    how: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a value could not be read."""

    reason: str


Fact = Known[T] | Unknown


class Vendor(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"
    OTHER = "other"


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

    @property
    def usable_accelerators(self) -> tuple[Accelerator, ...]:
        return tuple(
            card
            for card in self.accelerators
            if card.support is Support.SUPPORTED and isinstance(card.usable, Known) and card.usable.value
        )
