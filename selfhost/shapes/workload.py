"""The normal form of a launched engine: what readers produce, rules judge and renderers consume."""

from dataclasses import dataclass, field
from enum import StrEnum


class Form(StrEnum):
    """The kind of text a workload was read from."""

    PROCESS = "process"
    COMPOSE = "compose"
    RUN = "run"
    """A `docker run` or `podman run` line."""
    QUADLET = "quadlet"
    POD = "pod"
    """One container of a Kubernetes object."""
    INSPECT = "inspect"
    """A container that exists, as `docker inspect` or `podman inspect` shows it."""
    BATCH = "batch"
    """srun, sbatch, Apptainer, enroot."""


class ContainerEngine(StrEnum):
    """Who starts the container; NONE for a plain process, UNKNOWN where the text serves several."""

    NONE = "none"
    DOCKER = "docker"
    PODMAN = "podman"
    KUBERNETES = "kubernetes"
    APPTAINER = "apptainer"
    UNKNOWN = "unknown"


class EnvSource(StrEnum):
    """Where the value of a variable comes from."""

    TEXT = "text"
    ENV_FILE = "env_file"
    PASSED_THROUGH = "passed through"
    """Named without a value: the shell that starts the container decides (`environment: [NAME]`, `-e NAME`)."""
    REFERENCE = "reference"
    """Out of an object that the text only names (a Secret, a ConfigMap, the downward API): the value is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place in a text; line and column count from 1."""

    line: int
    column: int = 1
    path: str = ""
    """Only where it is another file than the workload's own (an env_file, an extended Compose file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePath:
    """A host path under /dev that is handed in by `--device` or Compose `devices:`; a bind or hostPath is a Mount."""

    source: str
    target: str = ""
    key: str = ""
    """Key of its spot in `Workload.at`, as `devices.0`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiName:
    """A fully qualified CDI device, `nvidia.com/gpu=0`: by `--device`, `devices:`, AddDevice= or driver `cdi`."""

    kind: str
    """Vendor and class: `nvidia.com/gpu`."""
    name: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """Docker's own request for devices: `--gpus`, `gpus:`, `deploy.resources.reservations.devices`, DeviceRequests."""

    driver: str = ""
    count: int | None = None
    """-1 is `all`; None is not said."""
    ids: tuple[str, ...] = ()
    capabilities: tuple[str, ...] | None = ("gpu",)
    """None when the text does not name them though its form must."""
    spelling: str = ""
    """As written: `--gpus`, `gpus`, `deploy`, `DeviceRequests`."""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A bind, volume or tmpfs. `source` is a path, a volume's name, or empty; `medium` as `Memory` of an emptyDir."""

    target: str
    source: str = ""
    kind: str = "bind"
    """bind, volume, tmpfs, emptyDir, hostPath, pvc, configMap, secret, projected, image."""
    read_only: bool = False
    medium: str = ""
    size_bytes: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ulimit:
    """As setrlimit(2) takes it; -1 is unlimited."""

    name: str
    """`memlock`, `stack`, `nofile`."""
    soft: int
    hard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A health check that the container engine runs inside the container. Seconds."""

    test: tuple[str, ...]
    """The command, without the word CMD."""
    interval_s: float
    timeout_s: float
    retries: int
    start_period_s: float
    """Failures do not count so long: the model is loading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """As in a pod: an empty key with operator Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What the pod around a container says. Quantities stay the texts they are."""

    kind: str
    """Of the object that holds the pod: Pod, Deployment, StatefulSet, DaemonSet, Job, LeaderWorkerSet…"""
    name: str
    """Of that object."""
    limits: dict[str, str] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    pod_resources: dict[str, str] = field(default_factory=dict)
    """Limits and requests that stand at the pod's own level."""
    claims: tuple[str, ...] = ()
    """Names of resource claims (DRA) that this container uses."""
    claim_classes: tuple[str, ...] = ()
    """Their device classes, as far as claims and templates are in the same text."""
    runtime_class: str = ""
    runtime_classes: tuple[str, ...] = ()
    """RuntimeClass objects in the same text."""
    node_selector: dict[str, str] = field(default_factory=dict)
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    init: bool = False
    host_ipc: bool = False
    seccomp: str = ""
    supplemental_groups: tuple[int, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One engine, or one container beside it, as it is (to be) launched.

    What a text does not say is empty here; nothing is filled in from defaults of an engine or an image.
    """

    name: str
    argv: tuple[str, ...]
    """The command and its arguments behind any container engine. Empty when only the image knows them."""
    env: dict[str, str] = field(default_factory=dict)
    path: str = ""
    """File it was read from."""
    at: dict[str, Spot] = field(default_factory=dict)
    """Spots by key: `env.NAME`, `argv.3`, `devices.0`, `cdi.0`, `requests.0`, `image`, `privileged`, `name`,
    `mounts.0`, `group_add.0`, `runtime`, `user`, `shm_size`, `ipc`, `limits.RESOURCE`, `runtime_class`, `claims.0`…
    A key without a spot of its own stands where its longest known beginning does."""
    form: Form = Form.PROCESS
    container_engine: ContainerEngine = ContainerEngine.NONE
    rootless: bool | None = None
    """None when the text does not say (podman without sudo is a guess, not a fact)."""
    image: str = ""
    entrypoint: tuple[str, ...] | None = None
    """None is the image's own; an empty one resets it."""
    env_sources: dict[str, EnvSource] = field(default_factory=dict)
    """Variables whose value is not simply in the text. `env` holds env_file's values; not those that are unknown."""
    devices: tuple[DevicePath, ...] = ()
    cdi: tuple[CdiName, ...] = ()
    requests: tuple[DeviceRequest, ...] = ()
    runtime: str = ""
    """OCI runtime: nvidia, amd, runc; empty is the daemon's default."""
    privileged: bool = False
    user: str = ""
    group_add: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    ipc: str = ""
    pid: str = ""
    network: str = ""
    shm_bytes: int | None = None
    mounts: tuple[Mount, ...] = ()
    ports: tuple[str, ...] = ()
    restart: str = ""
    pod: PodFacts | None = None
    job: dict[str, str] = field(default_factory=dict)
    """What a batch line asks for: `gres`, `gpus`, `export`, `cleanenv`, `nv`, `rocm`, `contain`."""
    opaque: tuple[str, ...] = ()
    """Options that only the run knows (`$EXTRA_ARGS`, `--group-add $(…)`): what is missing here may stand in them."""
    userns: str = ""
    device_cgroup_rules: tuple[str, ...] = ()
    hooks_dirs: tuple[str, ...] = ()
    detached: bool = False
    """`docker run -d`: it is meant to run on."""
    env_files: tuple[str, ...] = ()
    """Files of variables by path; `env` holds the values of those that could be read."""
    init: bool = False
    """A small init process is PID 1: it reaps children and passes signals on."""
    read_only: bool = False
    """The container's root file system."""
    stop_grace_s: float | None = None
    """Between SIGTERM and SIGKILL; None is the engine's default (10 s)."""
    health: Health | None = None
    labels: dict[str, str] = field(default_factory=dict)
    log_driver: str = ""
    log_options: dict[str, str] = field(default_factory=dict)
    ulimits: tuple[Ulimit, ...] = ()

    @property
    def label(self) -> str:
        """How a person finds it in its text: `service vllm`, `container vllm of Deployment/llm`."""
        if self.form is Form.COMPOSE:
            return f"service {self.name}"
        if self.form is Form.POD and self.pod:
            return (
                f"{'init container' if self.pod.init else 'container'} {self.name} of {self.pod.kind}/{self.pod.name}"
            )
        if self.form in (Form.QUADLET, Form.INSPECT):
            return f"container {self.name}"
        return self.name

    def spot(self, key: str) -> Spot | None:
        """Where `key` stands, or its longest beginning that is known."""
        while key:
            if key in self.at:
                return self.at[key]
            key = key.rpartition(".")[0]
        return self.at.get("name")
