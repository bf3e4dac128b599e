"""Which cluster and namespace a deployment is in: written before anything is applied, read by every later command."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from selfhost.core.files import write_atomic
from selfhost.core.paths import Paths

SCHEMA = "selfhost.cluster/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Where a deployment's objects are. `how`: `helm` or `apply`."""

    context: str
    namespace: str
    release: str
    deployment: str
    """Name of the engine's Deployment."""
    port: int
    """Of this machine, which a forward leads from."""
    pod_port: int
    how: str
    files: str = ""
    """KUBECONFIG at that time."""


def _file(paths: Paths, name: str) -> Path:
    return paths.deployment(name) / "run" / "cluster.json"


def write(paths: Paths, name: str, record: Record) -> None:
    write_atomic(_file(paths, name), json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1, sort_keys=True) + "\n")


def read(paths: Paths, name: str) -> Record | None:
    """None where nothing was ever applied, or what was written is no record."""
    try:
        raw = json.loads(_file(paths, name).read_text(encoding="utf-8"))
        return Record(**{key: value for key, value in raw.items() if key != "schema"})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def forget(paths: Paths, name: str) -> None:
    _file(paths, name).unlink(missing_ok=True)
