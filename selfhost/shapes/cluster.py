"""What is known of a Kubernetes cluster, and what is decided for a model on it."""

from dataclasses import dataclass, field

from selfhost.shapes.workload import Toleration


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabel:
    """One required expression over a node's labels. `Gt` and `Lt` take one whole number."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """Devices by dynamic resource allocation."""

    api_version: str
    device_class: str
    selectors: tuple[str, ...] = ()
    """CEL over one device."""
    constraints: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDevices:
    """What one pod asks the scheduler for. `count` whole cards, slices or shares."""

    vendor: str
    """`nvidia`, `amd`, `intel`, `none`."""
    mode: str
    """`devicePlugin`, `dra`, `none`."""
    resource: str = ""
    """`nvidia.com/gpu`, `nvidia.com/mig-3g.40gb`, `amd.com/gpu`, `gpu.intel.com/xe`."""
    count: int = 0
    labels: tuple[NodeLabel, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    claim: DeviceClaim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAsk:
    """What was asked for of a cluster: `--kube-context`, `--namespace` and `kubernetes:` of selfhost.yaml."""

    context: str = ""
    """Of the kubeconfig; empty is its current one."""
    namespace: str = ""
    existing_claim: str = ""
    """A PersistentVolumeClaim that holds the weights already."""
    sub_path: str = ""
    storage_class: str | None = None
    runtime_class: str = "auto"
    replicas: int | None = None
    hub_token_secret: str = ""
    key_secret: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    ca_config_map: str = ""
    tolerations: tuple[Toleration, ...] = ()
    """Of taints that the card's vendor does not set."""
    node_selector: dict[str, str] = field(default_factory=dict)
    host: str = ""
    """Name under which an ingress publishes it."""
    ingress_class: str = ""
    tls_secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to serve the same model: what it adds to the arguments that all ways have in common."""

    name: str
    """`on`, `off`, `budget=2048`, `effort=low`; `bf16`, `fp8`; `auto`."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    request: dict[str, object] = field(default_factory=dict)
    """Fields that a client must send for it, because the server keeps no such default."""
    thinks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """The command line in parts: `args`, then that of each form, then `extra`. Each tuple begins with what is served.

    A form that is not here is impossible on this card, does not fit, or was not planned.
    """

    args: tuple[str, ...]
    env: dict[str, str]
    modes: tuple[Form, ...]
    weights: tuple[Form, ...]
    kv: tuple[Form, ...]
    extra: tuple[str, ...] = ()
    """What the user passes on to the engine."""

    @property
    def argv(self) -> tuple[str, ...]:
        return (*self.args, *self.weights[0].args, *self.kv[0].args, *self.modes[0].args, *self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """What is decided only for a cluster. Paths are inside the container. Sizes in bytes, times in seconds."""

    release: str
    """Name of the Helm release and of every object."""
    namespace: str
    context: str
    image: str
    """Reference to pull, its registry included."""
    user: str
    """`uid:gid` that the image has; empty where it has none without root."""
    unconfined: bool = False
    """Ranks on AMD cards read each other's memory, which the runtime's default seccomp profile refuses."""
    devices: ClusterDevices
    runtime_class: str
    """Empty: none is set."""
    cpu: str
    memory: int
    ephemeral_request: int
    ephemeral_limit: int
    shm: int
    startup_budget_s: int
    fetch_budget_s: int
    prestop_s: int
    drain_s: int
    weights_claim: str
    """An existing claim; empty: one of the release."""
    weights_sub_path: str
    weights_size: int
    storage_class: str | None
    cache_sub_path: str
    cache_arch: str
    """The kind of card or processor that the cache is for: `sm_89`, `x86_64`."""
    replicas: int
    ask: ClusterAsk
    forms: Forms | None = None
    """None while the plan is not whole yet."""
    exceptions: tuple[str, ...] = ()
    """Why a namespace that enforces `restricted` refuses the pod, one clause each; empty: it takes it."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a value is what it is, by its path in the chart's values (`probes.startupBudgetSeconds`)."""
