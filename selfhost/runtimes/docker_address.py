"""Where the Docker daemon is that the user's own `docker` talks to: DOCKER_HOST, the context, or the usual socket."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System

USUAL = "unix:///var/run/docker.sock"
TLS_FILES = ("ca.pem", "cert.pem", "key.pem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`ca`, `cert` and `key` are files; empty without TLS."""

    url: str
    said_by: str = ""
    """Where it comes from, as a person finds it: `DOCKER_HOST`, `the context desktop-linux`."""
    tls: bool = False
    verify: bool = True
    ca: str = ""
    cert: str = ""
    key: str = ""

    @property
    def is_ssh(self) -> bool:
        return self.url.startswith("ssh://")

    @property
    def is_socket(self) -> bool:
        return self.url.startswith("unix://")

    @property
    def socket(self) -> str:
        return self.url.removeprefix("unix://")

    def __str__(self) -> str:
        return f"{self.url} ({self.said_by})" if self.said_by else self.url


def address_of(system: System) -> Address:
    """In the order of Docker's own client: variable, DOCKER_CONTEXT, currentContext. Raises EnvironmentMissing."""
    env = system.env
    folder = env.get("DOCKER_CONFIG") or f"{env.get('HOME', '')}/.docker"
    said = env.get("DOCKER_HOST", "")
    if said:
        return _of_variable(said, env.get("DOCKER_CERT_PATH") or folder, tls=bool(env.get("DOCKER_TLS_VERIFY")))
    name = env.get("DOCKER_CONTEXT", "") or _current(system, folder)
    if name and name != "default":
        return _of_context(system, folder, name)
    runtime = env.get("XDG_RUNTIME_DIR", "")
    rootless = f"{runtime}/docker.sock"
    if runtime and not _exists(system, USUAL.removeprefix("unix://")) and _exists(system, rootless):
        return Address(url=f"unix://{rootless}", said_by="rootless Docker")
    return Address(url=USUAL)


def _of_variable(said: str, folder: str, *, tls: bool) -> Address:
    if not tls:
        return Address(url=said, said_by="DOCKER_HOST")
    ca, cert, key = (f"{folder}/{name}" for name in TLS_FILES)
    return Address(url=said, said_by="DOCKER_HOST", tls=True, ca=ca, cert=cert, key=key)


def _of_context(system: System, folder: str, name: str) -> Address:
    digest = hashlib.sha256(name.encode()).hexdigest()
    path = f"{folder}/contexts/meta/{digest}/meta.json"
    endpoint = _json(system, path).get("Endpoints", {}).get("docker", {})
    url = endpoint.get("Host") if isinstance(endpoint, dict) else None
    if not isinstance(url, str) or not url:
        raise EnvironmentMissing(
            f"Docker's context `{name}` names no daemon",
            why=f"DOCKER_CONTEXT or {folder}/config.json chose it, and {path} says nothing that can be read.",
            fix=("see which there are:\ndocker context ls", "choose one:\ndocker context use default"),
            id="RT065",
        )
    verify = endpoint.get("SkipTLSVerify") is not True
    files = f"{folder}/contexts/tls/{digest}/docker"
    has = {one for one in TLS_FILES if _exists(system, f"{files}/{one}")}
    ca, cert, key = (f"{files}/{one}" if one in has else "" for one in TLS_FILES)
    return Address(
        url=url, said_by=f"the context {name}", tls=bool(has), verify=verify, ca=ca, cert=cert, key=key
    )  # fmt: skip


def _current(system: System, folder: str) -> str:
    name = _json(system, f"{folder}/config.json").get("currentContext")
    return name if isinstance(name, str) else ""


def _json(system: System, path: str) -> dict[str, Any]:
    try:
        said = json.loads(system.read(path))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _exists(system: System, path: str) -> bool:
    try:
        system.stat(path)
    except OSError:
        return False
    return True
