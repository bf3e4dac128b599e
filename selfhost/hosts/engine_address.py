"""Where the daemon is that a client talks to: on this machine, on another, or around this container."""

import hashlib
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from selfhost.core.system import System
from selfhost.hosts.glance import glance

_VARIABLES: Mapping[str, str] = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}
_SOCKETS: Mapping[str, str] = {"docker": "docker.sock", "podman": "podman.sock"}
_HERE = ("", "localhost", "127.0.0.1", "::1")


def remote(system: System, kind: str) -> str:
    """The address when it is another machine's (`ssh://`, `tcp://`); empty for a socket here."""
    address = _address(system, kind)
    parts = urlsplit(address)
    if parts.scheme not in ("ssh", "tcp", "http", "https"):
        return ""
    # A password or user in it is nobody's business.
    place = (parts.hostname or "") + (f":{parts.port}" if _has_port(address) else "")
    return "" if (parts.hostname or "") in _HERE else f"{parts.scheme}://{place}"


def is_sibling(system: System, kind: str) -> bool:
    """Whether the daemon's socket is mounted into this container: then it is that of the machine around."""
    address = _address(system, kind)
    if address and not address.startswith("unix://"):
        return False
    wanted = address.removeprefix("unix://")
    points = [line.split()[4] for line in glance(system, "/proc/self/mountinfo").splitlines() if len(line.split()) > 5]
    name = _SOCKETS[kind]
    return any(
        point == wanted or (not wanted and re.fullmatch(rf"(/var)?/run/(podman/)?{name}", point)) for point in points
    )


def _address(system: System, kind: str) -> str:
    said = system.env.get(_VARIABLES[kind], "")
    return said or (_of_context(system) if kind == "docker" else "")


def _of_context(system: System) -> str:
    """The address of the chosen context; each lies in a folder named by the hash of its name (docker/cli)."""
    folder = system.env.get("DOCKER_CONFIG") or f"{system.env.get('HOME', '')}/.docker"
    name = system.env.get("DOCKER_CONTEXT") or _read(system, f"{folder}/config.json", "currentContext")
    if not name or name == "default":
        return ""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return _read(system, f"{folder}/contexts/meta/{digest}/meta.json", "Endpoints", "docker", "Host")


def _read(system: System, path: str, *keys: str) -> str:
    try:
        said = json.loads(glance(system, path) or "{}")
        for key in keys:
            said = said[key]
    except (ValueError, KeyError, TypeError):
        return ""
    return said if isinstance(said, str) else ""


def _has_port(address: str) -> bool:
    try:
        return urlsplit(address).port is not None
    except ValueError:
        return False
