"""What a container engine shows of one container, by its own command."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from selfhost.core.system import System

_TIMEOUT_S: Final = 5.0


def inspected(system: System, name: str, engines: Sequence[str]) -> Mapping[str, Any] | None:
    """Of the first engine that knows it; None where none does: a pod, or a container of another machine."""
    for engine in engines:
        done = system.run((engine, "container", "inspect", name), timeout_s=_TIMEOUT_S)
        if not done.ok:
            continue
        try:
            found = json.loads(done.stdout)
        except ValueError:
            continue
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return found[0]
    return None
