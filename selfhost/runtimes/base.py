"""What every runtime can be asked to do, and the words it answers in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from selfhost.core.processes import ProcessRef
from selfhost.shapes.finding import Finding

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchable:
    """One engine to start: `python -m module argv…`. No field holds a secret; `key_file` names where the key lies."""

    name: str
    python: str
    module: str
    argv: tuple[str, ...]
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


class Runtime(Protocol):
    """A way to run engines. Names are those of deployments; every call is safe to repeat."""

    @property
    def info(self) -> RuntimeInfo: ...

    def start(self, launch: Launchable) -> Seen:
        """Start the engine, or return the one that runs. Raises EnvironmentMissing when it can't be started."""
        ...

    def inspect(self, name: str) -> Seen: ...

    def logs(self, name: str) -> Path: ...

    def stop(self, name: str, *, grace_s: float) -> StopReceipt: ...

    def remove(self, name: str) -> StopReceipt:
        """Stop, then remove what starting made: records and logs."""
        ...
