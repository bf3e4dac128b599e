"""Where things lie (XDG)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.home import home
from selfhost.core.names import check_name


def _xdg(env: Mapping[str, str], variable: str, default: str) -> Path:
    """XDG ignores relative paths (specification §2), and so do we."""
    asked = Path(env.get(variable, ""))
    return (asked if asked.is_absolute() else home(env) / default) / "selfhost"


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
