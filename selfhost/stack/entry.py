"""What selfhost.lock holds of one service: everything that decides what answers, and what was around it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """One file of the model, by its path in the model's folder. `sha256` is 64 hexadecimal digits."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedImage:
    """`digest` is that of the registry's manifest; empty for an image that was made or loaded here."""

    reference: str
    digest: str = ""
    platform: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedHost:
    """The machine it was locked on. These may differ elsewhere. Empty: there was none, or it could not be read."""

    driver: str = ""
    """`NVIDIA 580.95.05`."""
    cuda: str = ""
    toolkit: str = ""
    container_engine: str = ""
    """`docker 28.1.1`."""
    cards: dict[str, int] = field(default_factory=dict)
    """How many of each name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One service as it was decided and found. An empty value is not known, and is not compared."""

    runtime: str = ""
    engine: str = ""
    engine_version: str = ""
    image: LockedImage | None = None
    """None for a process."""
    model: str = ""
    revision: str = ""
    files: tuple[LockedFile, ...] = ()
    reasoning: str = ""
    """`budget=2048`."""
    weights_precision: str = ""
    kv_precision: str = ""
    context: int = 0
    concurrency: int = 0
    devices: int = 0
    """How many cards; 0 on the CPU."""
    flags: tuple[str, ...] = ()
    """Flags that the engine is told, without paths and ports."""
    plan_digest: str = ""
    libraries: dict[str, str] = field(default_factory=dict)
    """Of the engine's environment; empty for a container, whose image holds them."""
    host: LockedHost = field(default_factory=LockedHost)
    selfhost: str = ""
