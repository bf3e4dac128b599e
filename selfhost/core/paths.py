"""Where things lie (XDG), and which names may stand for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.errors import InputError

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")


def _xdg(env: Mapping[str, str], variable: str, default: str) -> Path:
    """XDG ignores relative paths (specification §2), and so do we."""
    asked = Path(env.get(variable, ""))
    return (asked if asked.is_absolute() else Path(env.get("HOME") or "/root") / default) / "selfhost"


@dataclass(frozen=True, slots=True)
class Paths:
    """Our folders. State survives, the cache may be deleted at any time while nothing runs."""

    state: Path
    cache: Path

    @classmethod
    def of(cls, env: Mapping[str, str]) -> "Paths":
        return cls(
            state=_xdg(env, "XDG_STATE_HOME", ".local/state"),
            cache=_xdg(env, "XDG_CACHE_HOME", ".cache"),
        )

    @property
    def deployments(self) -> Path:
        return self.state / "deployments"

    @property
    def devices(self) -> Path:
        """Host-wide locks, one per device: starts on one device are serialised."""
        return self.state / "devices"

    @property
    def traces(self) -> Path:
        return self.state / "log"

    @property
    def engines(self) -> Path:
        """Managed engine environments, shared by deployments."""
        return self.cache / "engines"

    @property
    def models(self) -> Path:
        """Models that selfhost converted itself; hub downloads lie in the user's own HF_HOME."""
        return self.cache / "models"

    def deployment(self, name: str) -> Path:
        return self.deployments / check_name(name)


def check_name(name: str) -> str:
    """Return `name` when it can be a folder, a container, a unit and a DNS label part; raise InputError else."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"`{name}` cannot name a deployment",
            why="A name becomes a folder and a container: 1 to 63 of a-z 0-9 . _ -, letters or digits at both ends.",
            fix=(f"use for instance:\nselfhost up MODEL --name {slug(name) or 'my-model'}",),
            id="CF001",
        )
    return name


def slug(text: str) -> str:
    """The nearest valid name: `Qwen/Qwen3-4B` → `qwen3-4b`."""
    base = text.rstrip("/").rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9._-]+", "-", base).strip("-._")[:63].rstrip("-._")
