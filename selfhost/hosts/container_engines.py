"""Container engines: docker and podman as they describe themselves, and what each could hand into a container."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed, System
from selfhost.core.versions import numbers
from selfhost.hosts import engine_address
from selfhost.hosts.engine_questions import NAMED, TIMEOUT_S, Said, answered
from selfhost.hosts.glance import exists, glance
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.surroundings import Engine

# Engines that only pods or other programs talk to, by their sockets.
_SOCKETS = (
    ("containerd", "/run/containerd/containerd.sock"),
    ("containerd", "/run/k3s/containerd/containerd.sock"),
    ("cri-o", "/run/crio/crio.sock"),
)


def read(system: System, said: Sequence[Said], *, containers: bool = False) -> tuple[Engine, ...]:
    """`injects` stays empty here: it needs the CDI specifications and the toolkits too, see engine_injects.

    `containers` asks for every container too; on a snapshot they are taken as they were recorded.
    """
    found: dict[str, Engine] = {}
    for answer in said:
        engine = _engine(system, answer)
        if answer.info and (containers or isinstance(system, Recorded)):
            engine = _with_containers(system, engine, answer.kind)
        # podman-docker answers for docker: the same engine twice, and podman's own words are the fuller ones.
        if engine.kind not in found or answer.kind == engine.kind:
            found[engine.kind] = engine
    return (*found.values(), *_others(system, found))


def _engine(system: System, said: Said) -> Engine:
    if said.done.argv == NAMED and said.done.ok:
        return Engine(kind=said.kind, version=said.version, answers=Unknown("not asked: there is no card to hand in"))
    if not said.info:
        return Engine(
            kind=said.kind,
            version="",
            answers=_silent(said.kind, said.done),
            remote=engine_address.remote(system, said.kind),
            sibling=engine_address.is_sibling(system, said.kind),
        )
    if said.info.get("host"):
        return _podman(system, said)
    return _docker(system, said)


# What a client prints when its daemon does not answer, what that means, and what to do.
_REFUSALS: Sequence[tuple[str, str, str]] = (
    (
        r"permission denied",
        "this user may not open its socket",
        "join the group of the socket and log in again: sudo usermod -aG docker $USER",
    ),
    (
        r"cannot connect|connection refused|is the docker daemon running|no such file",
        "its daemon is not running",
        "start it: sudo systemctl start docker",
    ),
    (
        r"context .* not found|unable to resolve",
        "its context names no daemon",
        "choose one: docker context use default",
    ),
    (r"holds no answer", "the snapshot holds no answer of it", "save the snapshot again where it runs"),
)


def _silent(kind: str, done: Completed) -> Fact[bool]:
    text = " ".join((done.stderr, done.stdout if done.stdout.lstrip().startswith("{") else done.stdout[:400]))
    if done.timed_out:
        return Known(value=False, how=f"{kind} info gave no answer within {TIMEOUT_S:.0f} s; restart its daemon")
    for pattern, meaning, fix in _REFUSALS:
        if re.search(pattern, text, re.IGNORECASE):
            return Known(value=False, how=f"{kind} info: {meaning}; {fix.replace('docker', kind)}")
    last = text.strip().splitlines()[-1:] or [f"it ended with {done.rc}"]
    return Known(value=False, how=f"{kind} info: {last[0].strip()[:160]}")


def _docker(system: System, said: Said) -> Engine:
    info = said.info
    root = str(info.get("DockerRootDir") or "")
    remote = engine_address.remote(system, "docker")
    security = tuple(str(option) for option in _list(info.get("SecurityOptions")))
    dirs = tuple(str(path) for path in _list(info.get("CDISpecDirs")))
    offered = tuple(str(one.get("ID", "")) for one in _list(info.get("DiscoveredDevices")) if isinstance(one, Mapping))
    # Podman serves Docker's API too; where it keeps its images tells.
    kind = "podman" if root.endswith("/containers/storage") else "docker"
    return Engine(
        kind=kind,
        version=said.version,
        answers=Known(value=True, how="docker info"),
        rootless=_docker_rootless(root, security, said="SecurityOptions" in info),
        desktop=info.get("OperatingSystem") == "Docker Desktop" or info.get("Name") == "docker-desktop",
        snap=root.startswith("/var/snap/"),
        remote=remote,
        sibling=engine_address.is_sibling(system, "docker"),
        runtimes=tuple(str(name) for name in _list(info.get("Runtimes"))),
        default_runtime=str(info.get("DefaultRuntime") or ""),
        cgroup_driver=str(info.get("CgroupDriver") or ""),
        cgroup_version=str(info.get("CgroupVersion") or ""),
        cdi_enabled=_docker_cdi(system, said, dirs, offered, local=not remote) if kind == "docker" else _podman_cdi(""),
        cdi_dirs=dirs,
        cdi_devices=offered,
        security=security,
        root_dir=root,
        os=str(info.get("OperatingSystem") or ""),
    )


def _docker_rootless(root: str, security: Sequence[str], *, said: bool) -> Fact[bool]:
    if any(option.split(",")[0] == "name=rootless" for option in security):
        return Known(value=True, how="docker info, SecurityOptions")
    if root:
        return Known(value="/.local/share/" in root, how=f"docker info, DockerRootDir {root}")
    return Known(value=False, how="docker info, SecurityOptions") if said else Unknown("docker info did not say")


_CDI_SINCE, _CDI_ALWAYS = (25,), (28, 3)


def _docker_cdi(system: System, said: Said, dirs: Sequence[str], offered: Sequence[str], *, local: bool) -> Fact[bool]:
    """A daemon names its CDI directories only while CDI is on."""
    if dirs or offered:
        return Known(value=True, how="docker info, CDISpecDirs" if dirs else "docker info, DiscoveredDevices")
    version = numbers(said.version)
    if version and version < _CDI_SINCE:
        return Known(value=False, how=f"Docker {said.version} is older than CDI in Docker (25)")
    if "CDISpecDirs" in said.info:
        return Known(value=False, how="docker info names no CDI directory")
    chosen = _feature(system) if local else None
    if chosen is not None:
        return Known(value=chosen, how="/etc/docker/daemon.json, features.cdi")
    if version >= _CDI_ALWAYS:
        return Known(value=True, how=f"Docker {said.version} has CDI on unless it is told otherwise")
    return Unknown("docker info does not say whether CDI is on")


def _feature(system: System) -> bool | None:
    try:
        chosen = json.loads(glance(system, "/etc/docker/daemon.json") or "{}")["features"]["cdi"]
    except (ValueError, KeyError, TypeError):
        return None
    return chosen if isinstance(chosen, bool) else None


def _podman(system: System, said: Said) -> Engine:
    host = said.info["host"] if isinstance(said.info["host"], Mapping) else {}
    security = _map(host.get("security"))
    store = _map(said.info.get("store"))
    runtime = str(_map(host.get("ociRuntime")).get("name") or "")
    traits = {"apparmorEnabled": "name=apparmor", "selinuxEnabled": "name=selinux", "seccompEnabled": "name=seccomp"}
    return Engine(
        kind="podman",
        version=said.version,
        answers=Known(value=True, how="podman info"),
        rootless=_podman_rootless(host, security),
        remote=engine_address.remote(system, "podman"),
        sibling=engine_address.is_sibling(system, "podman"),
        runtimes=(runtime,) if runtime else (),
        default_runtime=runtime,
        cgroup_driver=str(host.get("cgroupManager") or ""),
        cgroup_version=str(host.get("cgroupVersion") or "").removeprefix("v"),
        cdi_enabled=_podman_cdi(said.version),
        security=tuple(name for key, name in traits.items() if security.get(key)),
        root_dir=str(store.get("graphRoot") or ""),
        os=" ".join(str(_map(host.get("distribution")).get(key) or "") for key in ("distribution", "version")).strip(),
        controllers=tuple(str(name) for name in _list(host.get("cgroupControllers"))),
    )


def _podman_rootless(host: Mapping[str, Any], security: Mapping[str, Any]) -> Fact[bool]:
    if isinstance(security.get("rootless"), bool):
        return Known(value=security["rootless"], how="podman info, host.security.rootless")
    if "idMappings" not in host:
        return Unknown("podman info did not say")
    mapped = _list(_map(host["idMappings"]).get("uidmap"))
    own = next((one for one in mapped if isinstance(one, Mapping) and one.get("container_id") == 0), None)
    return Known(value=bool(own and own.get("host_id")), how="podman info, host.idMappings")


def _podman_cdi(version: str) -> Fact[bool]:
    if not numbers(version):
        return Unknown("its version is not known")
    return Known(value=numbers(version) >= (4, 1), how=f"Podman {version}; CDI came with 4.1")


def _with_containers(system: System, engine: Engine, kind: str) -> Engine:
    from dataclasses import replace

    listed = system.run((kind, "ps", "-a", "-q", "--no-trunc"), timeout_s=TIMEOUT_S)
    ids = listed.stdout.split() if listed.ok else []
    question = (kind, "inspect", *ids)
    done = answered(system, question) if ids or _is_recorded(system, kind) else None
    try:
        objects = json.loads(done.stdout) if done else []
    except ValueError:
        objects = []
    found = tuple(one for one in objects if isinstance(one, dict)) if isinstance(objects, list) else ()
    return replace(engine, containers=found)


def _is_recorded(system: System, kind: str) -> bool:
    return isinstance(system, Recorded) and any(argv[:2] == (kind, "inspect") for argv in system.argvs)


def _others(system: System, found: Mapping[str, Engine]) -> tuple[Engine, ...]:
    """A containerd beside Docker is Docker's own and no engine that anybody starts containers with."""
    if "docker" in found:
        return ()
    here: dict[str, Engine] = {}
    for kind, socket in _SOCKETS:
        if exists(system, socket):
            here.setdefault(kind, Engine(kind=kind, version="", answers=Unknown(f"{socket} is here; it was not asked")))
    return tuple(here.values())


def _list(value: object) -> Sequence[Any]:
    """What is listed; an object is the list of its names."""
    return tuple(value) if isinstance(value, list | Mapping) else ()


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
