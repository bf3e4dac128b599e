"""A deployment's container: its name, the labels by which it is known as ours, and how it stands."""

import secrets
import signal
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from selfhost.runtimes.base import EngineState, Launchable, Seen
from selfhost.runtimes.container_client import Object

NAME = "io.selfhost.name"
DIGEST = "io.selfhost.digest"
VERSION = "io.selfhost.version"
INSTANCE = "io.selfhost.instance"
WORKLOAD = "io.selfhost.workload"
FOLDER = "io.selfhost.folder"
"""The deployment's folder: two users of one daemon, or two state folders, are told apart by it."""

OWN = (NAME, DIGEST, INSTANCE, WORKLOAD, FOLDER)
"""Those of one start."""

_WORDS: Mapping[str, str] = {
    "running": "",
    "paused": "the container is paused: its engine answers nobody",
    "created": "its container was made and never started",
    "configured": "its container was made and never started",
    "initialized": "the container is being started",
    "removing": "the container is being ended",
    "stopping": "the container is being ended",
}
_STATES: Mapping[str, EngineState] = {
    "running": EngineState.RUNNING,
    "paused": EngineState.RUNNING,
    "initialized": EngineState.STARTING,
    "created": EngineState.GONE,
    "configured": EngineState.GONE,
    "removing": EngineState.GONE,
    "stopping": EngineState.GONE,
    "exited": EngineState.EXITED,
    "stopped": EngineState.EXITED,
    "dead": EngineState.EXITED,
    "restarting": EngineState.EXITED,
}
"""`restarting` is an engine that ended and will be started again."""


def container_name(name: str) -> str:
    """Of the container, and of its network."""
    return f"selfhost-{name}"


def labels_for(launch: Launchable, folder: str) -> dict[str, str]:
    """What is added to the labels of the rendered file when a container is started."""
    return {
        NAME: launch.name,
        INSTANCE: secrets.token_hex(8),
        WORKLOAD: launch.workload_digest,
        FOLDER: folder,
        **({DIGEST: launch.plan_digest} if launch.plan_digest else {}),
    }


def labels_of(found: Object) -> Mapping[str, str]:
    return _map(_map(found.get("Config")).get("Labels"))


def is_ours(labels: Mapping[str, str], name: str, folder: str) -> bool:
    """Made for this deployment: by us, or by hand from the rendered file, which names no folder of ours."""
    return labels.get(NAME) == name and labels.get(FOLDER, folder) == folder


def seen_of(found: Object, *, pid: int, start_ticks: int) -> Seen:
    """`pid` is 0 where the container's processes can't be seen from here."""
    state, labels, config = _map(found.get("State")), labels_of(found), _map(found.get("HostConfig"))
    status = str(state.get("Status") or "").lower()
    stands = _STATES.get(status, EngineState.UNKNOWN)
    code = _int(state.get("ExitCode")) if stands is EngineState.EXITED else None
    number = code - 128 if code is not None and code - 128 in set(signal.Signals) else None
    killed = _memory(state, number) if stands is EngineState.EXITED else None
    return Seen(
        state=stands,
        reason=_reason(status, state, code=code, number=number, out_of_memory=killed),
        pid=pid if stands in (EngineState.RUNNING, EngineState.STARTING) else 0,
        start_ticks=start_ticks,
        instance=labels.get(INSTANCE, str(found.get("Id") or "")[:16]),
        plan_digest=labels.get(DIGEST, ""),
        port=published(config),
        started_at=seconds(str(state.get("StartedAt") or "")),
        exit_code=None if number is not None else code,
        signal=number,
        out_of_memory=killed,
        stopped=stands is EngineState.EXITED and state.get("StoppedByUser") is True,
        workload_digest=labels.get(WORKLOAD, ""),
        container=str(found.get("Id") or "")[:12],
        image=str(found.get("Image") or ""),
        restarts=_int(found.get("RestartCount")) or 0,
        health=_health(state),
    )


def _reason(
    status: str, state: Mapping[str, Any], *, code: int | None, number: int | None, out_of_memory: bool | None
) -> str:
    if status == "running" and _health(state) == "unhealthy":
        return "the container's own health check fails"
    if status in _WORDS:
        return _WORDS[status]
    if code is None:
        return f"the container engine calls the container `{status}`"
    again = ", and the container engine starts it again" if status == "restarting" else ""
    return f"{_ended(state, code, number, out_of_memory=out_of_memory)}{again}"


def _ended(state: Mapping[str, Any], code: int, number: int | None, *, out_of_memory: bool | None) -> str:
    if state.get("Error"):
        return f"the engine could not be started: {state['Error']}"
    if state.get("StoppedByUser") is True:
        return "the engine was stopped"
    if out_of_memory:
        return "the engine was killed for lack of memory, says the container engine"
    if number is None:
        return f"the engine ended with exit code {code}"
    return f"the engine was ended by {signal.Signals(number).name}"


def _memory(state: Mapping[str, Any], number: int | None) -> bool | None:
    """The flag counts kills inside the container's control group; a kill without it may have come from elsewhere."""
    if state.get("OOMKilled") is True:
        return True
    return None if number == signal.SIGKILL else False


def _health(state: Mapping[str, Any]) -> str:
    said = _map(state.get("Health") or state.get("Healthcheck")).get("Status")
    return str(said) if said in ("starting", "healthy", "unhealthy") else ""


def published(config: Mapping[str, Any]) -> int | None:
    """The first port of the machine that leads into the container."""
    for bindings in _map(config.get("PortBindings")).values():
        for binding in bindings or ():
            port = str(_map(binding).get("HostPort") or "")
            if port.isdigit():
                return int(port)
    return None


def seconds(text: str) -> float:
    """RFC 3339, nanoseconds included, as seconds since the epoch; 0.0 for the year 1 and for what is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return moment.timestamp() if moment.year > 1 else 0.0


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None
