"""What was decided, each with its reason."""

from dataclasses import dataclass, field
from enum import StrEnum

from selfhost.shapes.model import Model
from selfhost.shapes.service import ReasoningMode


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
class EngineBuild:
    """One installable build of an engine: a row of engines/versions.toml."""

    engine: str
    """`vllm`, `sglang`."""
    version: str
    distribution: str
    """Name on PyPI."""
    backend: str
    """`cpu`, `cuda`."""
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
class Plan:
    """Everything that is needed to start the engine. `argv` and `env` hold no secret."""

    name: str
    model: Model
    build: EngineBuild
    runtime: str = "process"
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
    memory: MemoryPlan
    verdict: Verdict
    decisions: tuple[Decision, ...]
    argv: tuple[str, ...]
    """Arguments behind `python -m MODULE`."""
    env: dict[str, str]
    """Added to the engine's environment."""

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
