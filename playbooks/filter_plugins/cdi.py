"""What a CDI specification takes from the machine, so that a stale one is seen."""  # noqa: INP001 - Ansible finds it by its folder

from collections.abc import Callable, Iterator
from typing import Any

import yaml


def cdi_paths(text: str) -> list[str]:
    """Nodes, libraries and hooks that it names on the host; [] for what is no CDI specification."""
    try:
        said = yaml.safe_load(text)
    except yaml.YAMLError:
        return []
    if not isinstance(said, dict) or "cdiVersion" not in said or not isinstance(said.get("devices"), list):
        return []
    edits = [one.get("containerEdits") for one in (said, *said["devices"]) if isinstance(one, dict)]
    return sorted({path for one in edits if isinstance(one, dict) for path in _paths(one)})


def _paths(edits: dict[str, Any]) -> Iterator[str]:
    for kind in ("deviceNodes", "mounts", "hooks"):
        for one in edits.get(kind) or ():
            path = one.get("hostPath") or one.get("path") if isinstance(one, dict) else None
            if isinstance(path, str) and path.startswith("/"):
                yield path


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"cdi_paths": cdi_paths}
