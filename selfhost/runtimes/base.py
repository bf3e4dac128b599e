"""What every runtime can be asked to do, and the words it answers in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from selfhost.core.errors import Busy
from selfhost.core.processes import ProcessRef
from selfhost.runtimes.ports import Holder
from selfhost.shapes.event import Sink
from selfhost.shapes.finding import Finding
from selfhost.shapes.workload import Workload

LOG_LIMIT_BYTES = 64 * 1024**2
LOG_KEEP = 3
STOP_GRACE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """What a runtime is able to do, as data; callers decide by these and never by its name."""

    name: str
    isolates: bool
    """The engine sees only what it was granted (devices, files)."""
    restarts: bool
    """It starts an engine again that died."""
    survives_reboot: bool
    sees_processes: bool
    """Its engines are processes of this machine that can be looked at."""
    containers: bool = False
    """It runs images, and `start` wants a `Launchable.workload`."""
    cluster: bool = False
    """It hands the work to a cluster, and `start` wants a `Launchable.cluster`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLaunch:
    """Objects for a cluster, as they lie in `folder`."""

    context: str
    namespace: str
    release: str
    folder: str
    """Holds `manifests.yaml`, and for Helm `chart` and `values.yaml`."""
    pod_port: int
    how: str = "apply"
    """`helm` or `apply`."""
    key_secret: str = ""
    """Secret that is made for the key of `Launchable.key_file`; empty: none is."""
    key_of: str = ""
    """Secret of the user's that holds the key already; it is read into `Launchable.key_file`."""
    hub_secret: str = ""
    """Secret that is made for the hub's token of the user's environment; empty: none is."""
    force: bool = False
    """Fields of others are taken over, replicas never."""
    deadline_s: int = 3600
    """Until the cluster itself gives the start up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchable:
    """One engine to start: `python -m module argv…`, the container `workload`, or the objects of `cluster`.

    No field holds a secret; `key_file` and the workload's `env_files` name where the key lies.
    """

    name: str
    python: str = ""
    module: str = ""
    argv: tuple[str, ...] = ()
    workload: Workload | None = None
    """As it was read back from the written files, the user's overrides included."""
    workload_digest: str = ""
    cluster: ClusterLaunch | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to what is left of the user's environment (runtimes.environment)."""
    key_variable: str = ""
    key_file: str = ""
    plan_digest: str = ""
    port: int | None = None
    stop_grace_s: float = STOP_GRACE_S
    """How long the engine may take to end by itself."""
    log_limit_bytes: int = LOG_LIMIT_BYTES
    log_keep: int = LOG_KEEP


class EngineState(StrEnum):
    """`gone`: nothing runs and nobody wrote why. `unknown`: it could not be found out."""

    RUNNING = "running"
    STARTING = "starting"
    EXITED = "exited"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a deployment's engine."""

    state: EngineState
    reason: str = ""
    """A clause with its subject, to print as it is: why it is not running, or what is odd about a running one."""
    pid: int = 0
    start_ticks: int = 0
    instance: str = ""
    """A new random word per start: tells two starts of one plan apart."""
    plan_digest: str = ""
    port: int | None = None
    started_at: float = 0.0
    """Seconds since the epoch."""
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool | None = None
    """The kernel ended a process for lack of memory just when this engine was killed; None when it can't be known."""
    stopped: bool = False
    """It ended because it was told to."""
    leftovers: tuple[ProcessRef, ...] = ()
    """Processes of an engine that is gone itself."""
    findings: tuple[Finding, ...] = ()
    workload_digest: str = ""
    """Of the container's Launchable."""
    container: str = ""
    """Its id, short."""
    image: str = ""
    """Id of the image that it was made from."""
    restarts: int = 0
    """Automatic restarts since it was started by hand."""
    health: str = ""
    """By the container engine's own check: `starting`, `healthy`, `unhealthy`; empty without one."""

    @property
    def alive(self) -> bool:
        return self.state in (EngineState.RUNNING, EngineState.STARTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReceipt:
    """What stopping did, as seen afterwards."""

    ended: tuple[ProcessRef, ...]
    seconds: float
    forced: bool
    listener_free: bool
    """Nothing listens on the engine's port any more (true as well when it had none)."""
    leftovers: tuple[ProcessRef, ...] = ()
    removed: tuple[str, ...] = ()
    """Other things that are gone, in words: `container selfhost-qwen3-4b`, `network selfhost-qwen3-4b`."""


class PortTaken(Busy):
    """The container engine could not publish the port: somebody else has it."""


class Log(Protocol):
    """The engine's own output, wherever the runtime keeps it."""

    @property
    def where(self) -> str:
        """For a person: a path, or the command that shows it."""
        ...

    @property
    def exists(self) -> bool:
        """Whether there is one at all."""
        ...

    def more(self) -> str:
        """What was added since the last call; the first one gives everything of the present start."""
        ...

    def last(self, lines: int | None) -> str:
        """The last lines, or all that is kept."""
        ...


class Runtime(Protocol):
    """A way to run engines. Names are those of deployments; every call is safe to repeat."""

    @property
    def info(self) -> RuntimeInfo: ...

    def start(self, launch: Launchable) -> Seen:
        """Start the engine, or return the one that runs. Raises EnvironmentMissing when it can't be started."""
        ...

    def inspect(self, name: str) -> Seen: ...

    def log(self, name: str) -> Log: ...

    def stop(self, name: str, *, grace_s: float) -> StopReceipt:
        """End the engine, and remove the container that it ran in."""
        ...

    def remove(self, name: str) -> StopReceipt:
        """Stop, then remove what starting made: records, logs, networks. Volumes stay."""
        ...

    def processes(self, name: str) -> tuple[ProcessRef, ...]:
        """Every process of the engine that can be seen from here; empty where the runtime hides them."""
        ...

    def memory_bytes(self, name: str) -> int | None:
        """What the engine occupies, pages that its processes share counted once; None when it can't be known."""
        ...

    def port_holder(self, name: str, port: int) -> Holder | None:
        """Who but this deployment would be in the way of a server on 127.0.0.1:`port`."""
        ...

    def keep(self, name: str, policy: str) -> bool:
        """From now on it is started again by itself (`unless-stopped`); False when the runtime can't."""
        ...


class ContainerRuntime(Runtime, Protocol):
    """A runtime that runs images."""

    def image(self, reference: str) -> "LocalImage | None":
        """The image when it is on this machine; asks no registry."""
        ...

    def pull(self, reference: str, *, sink: Sink, step: str) -> "LocalImage":
        """Bring it here. Raises EnvironmentMissing: no such tag, access, space, network, or another architecture."""
        ...

    def remove_volume(self, volume: str) -> str:
        """Remove a volume that selfhost made; returns why it stays, or nothing when it is gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """An image as it lies here."""

    id: str
    """`sha256:…` of its configuration."""
    digest: str = ""
    """`sha256:…` of the manifest in the registry it came from; empty for one that was made or loaded here."""
    reference: str = ""
    platform: str = ""
    """`linux/amd64`."""
    size_bytes: int | None = None
    entrypoint: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
