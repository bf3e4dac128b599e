"""The normal form of a launched engine: what readers produce, rules judge and renderers consume."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One engine as it is (to be) launched. Later targets add images, devices, mounts and limits."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    path: str = ""
    """File it was read from."""
    lines: dict[str, int] = field(default_factory=dict)
    """Line of each environment variable in that file."""
