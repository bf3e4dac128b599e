"""What was decided, each with its reason."""

from dataclasses import dataclass, field
from enum import StrEnum

from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.model import Model
from selfhost.shapes.service import ReasoningMode
from selfhost.shapes.workload import CdiName, DevicePath, DeviceRequest, Mount


class Evidence(StrEnum):
    """How we know that a decision is right, strongest first."""

    SEEN_HERE = "seen here"
    SEEN_ELSEWHERE = "seen elsewhere"
    READ_IN_CODE = "read in code"
    ASSUMED = "assumed"


class EnforcedBy(StrEnum):
    """Who makes a decision hold at run time."""

    SERVER = "server"
    CLIENT = "client"
    NOBODY = "nobody"


class Verdict(StrEnum):
    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    TOO_CLOSE = "too close to call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision. `value` is what is done, in words; `by` is selfhost, or the flag of the user."""

    field: str
    value: str
    reason: str
    source: str = ""
    evidence: Evidence = Evidence.ASSUMED
    evidence_note: str = ""
    enforced_by: EnforcedBy = EnforcedBy.SERVER
    changes_behaviour: bool = False
    by: str = "selfhost"
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """How a model is cut: `tensor` × `pipeline` ranks hold one copy, and there are `data` copies."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False
    """Experts are divided over tensor × data ranks instead of being cut."""
    attention_data: int = 1
    """SGLang's DP attention: attention weights and KV cache are whole on `tensor / attention_data` ranks."""

    @property
    def ranks(self) -> int:
        """Devices that one start takes."""
        return self.tensor * self.pipeline * self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One published container image of an engine: a row of engines/images.toml."""

    engine: str
    version: str
    backend: str
    name: str
    """`vllm/vllm-openai`."""
    tag: str = ""
    """Empty where no tag of this version was read anywhere: it is looked up when the image is pulled."""
    tag_pattern: str = ""
    """How tags of this image look, where the tag itself is not known: `v0.5.23-rocm…-mi30x-DATE`."""
    newest_read: str = ""
    """The newest tag of this image that was read somewhere, of an older version."""
    line: str = ""
    """`cu129`: an image beside the default one, for older drivers."""
    command: tuple[str, ...] = ()
    """What stands before the flags; empty where the image's own entrypoint serves."""
    user: str = ""
    """A user without root that the image has, as `--user` takes it; empty where it has none."""
    toolkit: str = ""
    """`CUDA 13`, `ROCm 7.2`."""
    driver_floor: str = ""
    """The oldest NVIDIA driver branch."""
    archs: tuple[str, ...] = ()
    """Architectures that this image is for, where others of the same version are for others."""
    platforms: tuple[str, ...] = ()
    source: str = ""

    @property
    def reference(self) -> str:
        """`vllm/vllm-openai:v0.33.0`, or the name alone while the tag is not known."""
        return f"{self.name}:{self.tag}" if self.tag else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBuild:
    """One installable build of an engine: a row of engines/versions.toml."""

    engine: str
    """`vllm`, `sglang`."""
    version: str
    distribution: str
    """Name on PyPI."""
    backend: str
    """`cpu`, `cuda`, `rocm`, `xpu`."""
    requirements: tuple[str, ...]
    """Exact requirements beside the distribution itself."""
    remove: tuple[str, ...] = ()
    """Distributions to uninstall after the install."""
    fallback_index: str = ""
    """Package index to add when pip cannot resolve the build otherwise."""
    module: str
    """`python -m` target that serves."""
    import_name: str
    """Module whose import proves the installation."""
    installed_bytes: int
    """Disk that the environment takes, as measured."""
    constraints: str = ""
    """File name in engines/locks/ with the exact closure; empty when never measured."""
    python: str = ""
    """Python versions that the build supports, as a specifier."""
    source: str = ""
    process: bool = True
    """selfhost can install it and start it as a process; False: it is served from its image only."""
    why_no_process: str = ""
    toolkit: str = ""
    """What it is compiled with: `CUDA 13`."""
    driver_floor: str = ""
    """The oldest NVIDIA driver branch on which it starts; empty without one."""
    line: str = ""
    """`cu129`: a build beside the default one, for older drivers."""
    kernels: tuple[str, ...] = ()
    """Packages with compiled kernels at the exact version, without which the engine needs nvcc for some of them."""
    kernels_index: str = ""
    verified: bool = True
    """False for a version that is newer than every row: flags are those of the newest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPlan:
    """The mode asked for, as rendered; `unsent` says whether a client that sends nothing gets it."""

    mode: ReasoningMode
    budget_tokens: int | None = None
    effort: str | None = None
    parser: str = ""
    template_defaults: dict[str, object] = field(default_factory=dict)
    """Values of --default-chat-template-kwargs."""
    request_on: dict[str, object] = field(default_factory=dict)
    """Request fields that switch thinking on for one request; empty when it can't be switched."""
    request_off: dict[str, object] = field(default_factory=dict)
    client_extras: dict[str, object] = field(default_factory=dict)
    """Fields that a client must send to get the mode asked for (a budget on vLLM)."""
    can_think: bool = False
    can_switch: bool = False
    unsent: str = "served"
    """What a client that sends nothing gets: `served` or `only when asked`."""
    response_field: str = ""
    """Where a thought stands in an answer: `reasoning`, `reasoning_content`; empty where none is set apart."""
    answer_budget: int = 0
    """Least `max_tokens` with which a reply is not cut inside its thoughts; 0 where there are none."""
    server_flags: tuple[str, ...] = ()
    """Switches of the engine, without values, that keep the mode."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables for the engine that keep the mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """The arithmetic behind the verdict, in bytes."""

    weights: int
    overhead: int
    kv_cache: int
    kv_bytes_per_token: int
    kv_tokens: int
    available: int
    where: str
    """`memory of this machine`, `NVIDIA GeForce RTX 4090`."""

    @property
    def need(self) -> int:
        """What the engine will take when it serves."""
        return self.weights + self.overhead + self.kv_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """How the planned devices enter a container: one way, chosen for this host. Fields as in Workload."""

    way: str = "none"
    """`cdi`, `device request`, `nvidia runtime`, `tegra`, `nodes`, `dxg`, or `none` on the CPU."""
    cdi: tuple[CdiName, ...] = ()
    requests: tuple[DeviceRequest, ...] = ()
    runtime: str = ""
    """OCI runtime."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables that the OCI runtime reads (NVIDIA_VISIBLE_DEVICES): an allocation, not a mask of the process."""
    devices: tuple[DevicePath, ...] = ()
    group_add: tuple[str, ...] = ()
    """Numbers of the host's groups, or `keep-groups`."""
    mounts: tuple[Mount, ...] = ()
    security_opt: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """What is decided only for a container. Paths are inside it unless they say otherwise."""

    engine: str
    """`docker` or `podman`: whose words the files are in."""
    image: str
    """Reference to pull: `vllm/vllm-openai:v0.33.0`."""
    injection: Injection
    model_source: str
    """Path on the host, mounted read-only at `model_target`."""
    model_target: str
    model_path: str
    """Where the weights are found: `model_target`, or a snapshot below it."""
    port: int
    """The server listens here; published on `Plan.address:Plan.port`."""
    home: str
    """A volume of its own, for compile caches."""
    cache_volume: str
    """Its name: by image and architecture."""
    user: str = ""
    """`uid:gid`; empty is the image's own."""
    shm_bytes: int
    start_period_s: float
    """Loading takes at most so long."""
    stop_grace_s: float
    read_only: bool
    restart: str
    """For files that nobody checked yet: `on-failure:3`, or `no`."""
    restart_checked: str
    """After a first checked start: `unless-stopped`, or `no` on unified memory."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a line of a rendered file is there, by Workload key (`init`, `shm_size`, `cap_drop`, `mounts.0`…)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is needed to start the engine. `argv` and `env` hold no secret."""

    name: str
    model: Model
    build: EngineBuild
    image: Image | None = None
    """What a container is made from; None where there is no image for it."""
    runtime: str = "process"
    """`process`, `docker`, `podman`, `quadlet`, `kubernetes`; `container` where only those serve, and none is here."""
    container: ContainerPlan | None = None
    """None for a process."""
    cluster: ClusterPlan | None = None
    """Only for the runtime `kubernetes`."""
    device: str
    """`cpu`, or the accelerator: its uuid, else its PCI address, else its index."""
    device_name: str
    address: str = "127.0.0.1"
    port: int
    port_explicit: bool = False
    context: int
    concurrency: int
    weights_precision: str
    kv_precision: str
    reasoning: ReasoningPlan
    parallel: Parallel = field(default_factory=Parallel)
    memory: MemoryPlan
    verdict: Verdict
    decisions: tuple[Decision, ...]
    argv: tuple[str, ...]
    """Arguments behind `python -m MODULE`, or behind the image's own command."""
    env: dict[str, str]
    """Added to the engine's environment."""

    @property
    def device_count(self) -> int:
        """Accelerators that one start takes; 1 on the CPU."""
        return self.parallel.ranks

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:8000/v1`."""
        return f"http://{self.address}:{self.port}/v1"

    def decision(self, field: str) -> Decision | None:
        """The first decision about `field`."""
        return next((decision for decision in self.decisions if decision.field == field), None)

    @property
    def differs(self) -> tuple[Decision, ...]:
        """Decisions that make the model behave differently from the published one."""
        return tuple(decision for decision in self.decisions if decision.changes_behaviour)
