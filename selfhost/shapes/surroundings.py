"""What decides, besides the cards, whether a process or a container gets to use them."""

from dataclasses import dataclass, field

from selfhost.shapes.fact import Fact, Unknown, Vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStack:
    """One vendor's kernel module and what has to match it."""

    vendor: Vendor
    module: Fact[str]
    """Version of the loaded module; `in-tree` with the kernel's release for amdgpu, xe and i915 of the kernel."""
    loaded: Fact[bool]
    flavour: str = ""
    """`open`, `proprietary`, `in-tree`, `dkms`, `windows` (WSL2)."""
    library: Fact[str] = field(default_factory=lambda: Unknown("no library of the driver was found"))
    """Version of the driver's own user-space library here (libnvidia-ml, libcuda; ROCm; Level Zero)."""
    cuda: Fact[str] = field(default_factory=lambda: Unknown("not an NVIDIA driver"))
    """Highest CUDA that the driver runs, `12.8`."""
    failure: str = ""
    """What the driver's own tool said when it did not answer properly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiDevice:
    """One device of a CDI specification, `nvidia.com/gpu=0`."""

    name: str
    file: str
    nodes: tuple[str, ...] = ()
    """Device nodes it brings in, the specification's common ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiSpec:
    """One file of CDI devices."""

    file: str
    kind: str
    version: str
    devices: tuple[CdiDevice, ...] = ()
    driver: str = ""
    """Driver version by the names of the libraries that it mounts."""
    missing: tuple[str, ...] = ()
    """Host paths it names that do not exist."""
    stale: tuple[str, ...] = ()
    """Nodes whose numbers in the file are no longer theirs, in words."""
    fault: str = ""
    """Why it cannot be read; all else is empty then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A container engine: what it is, and what it can hand into a container."""

    kind: str
    """`docker` or `podman`."""
    version: str
    answers: Fact[bool]
    rootless: Fact[bool] = field(default_factory=lambda: Unknown("it did not say"))
    desktop: bool = False
    snap: bool = False
    remote: str = ""
    """Address of a machine that is not this one; what we see of cards here is then not what it has."""
    sibling: bool = False
    """Its socket is mounted from the machine around this container: paths and devices are that machine's."""
    runtimes: tuple[str, ...] = ()
    default_runtime: str = ""
    cgroup_driver: str = ""
    cgroup_version: str = ""
    cdi_enabled: Fact[bool] = field(default_factory=lambda: Unknown("it did not say"))
    cdi_dirs: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    """Fully qualified names that it offers itself (docker info, DiscoveredDevices)."""
    security: tuple[str, ...] = ()
    root_dir: str = ""
    os: str = ""
    controllers: tuple[str, ...] = ()
    injects: tuple[str, ...] = ()
    """What works by what was seen: `nvidia:gpus`, `nvidia:runtime`, `nvidia:cdi`, `amd:runtime`, `amd:cdi`, `nodes`."""
    containers: tuple[dict[str, object], ...] = ()
    """`docker inspect` objects, only when they were asked for or recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A vendor's container toolkit: nvidia-container-toolkit, amd-container-toolkit."""

    vendor: Vendor
    version: Fact[str]
    no_cgroups: bool | None = None
    """`no-cgroups` of its configuration; None when it says nothing."""
    mode: str = ""
    """`mode` of the NVIDIA runtime: auto, legacy, csv, cdi."""
    accepts_env_unprivileged: bool | None = None
    user_no_cgroups: bool | None = None
    """`no-cgroups` of the user's own configuration (XDG_CONFIG_HOME), which a rootless engine's runtime reads first."""
    fault: str = ""
    """Why its configuration cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What decides, besides the cards, whether a container or a process gets to use them. Read only when asked for."""

    drivers: tuple[DriverStack, ...] = ()
    engines: tuple[Engine, ...] = ()
    cdi: tuple[CdiSpec, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()
    uid: Fact[int] = field(default_factory=lambda: Unknown("not read"))
    groups: tuple[int, ...] = ()
    user_namespace: str = ""
    """`initial`, or the mapping as /proc/self/uid_map gives it."""
    kernel_arguments: tuple[str, ...] = ()
    iommu: str = ""
    """Of the cards' groups: `identity`, `DMA`, `DMA-FQ`, `mixed`; empty without an IOMMU."""
    selinux: str = ""
    """`enforcing`, `permissive`, or empty."""
    apparmor: bool = False
    dev_char_missing: tuple[str, ...] = ()
    """Device nodes of NVIDIA without a link in /dev/char."""
    nvswitches: int = 0
    fabric_manager: str = ""
    """`active 580.95.05`, `inactive`, `absent`; empty when it was not looked for."""
    shm_bytes: Fact[int] = field(default_factory=lambda: Unknown("not read"))
    memlock_bytes: Fact[int] = field(default_factory=lambda: Unknown("not read"))
    """-1 is unlimited."""
    nodes: tuple[dict[str, object], ...] = ()
    """Node objects of the cluster, as the API gives them."""
    objects: tuple[dict[str, object], ...] = ()
    """Every other object of the cluster that was recorded (RuntimeClass, Pod, DeviceClass…)."""
    swap_bytes: Fact[int] = field(default_factory=lambda: Unknown("not read"))
    pids_limit: Fact[int] = field(default_factory=lambda: Unknown("not read"))
