"""What docker and podman are asked, and their answers as one mapping each, whatever form they came in.

A person pastes `docker info` as text and `podman info` as YAML: a snapshot may hold those instead of ours.
"""

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed, System

TIMEOUT_S = 5.0
INFO: Mapping[str, tuple[str, ...]] = {
    "docker": ("docker", "info", "--format", "{{json .}}"),
    "podman": ("podman", "info", "--format", "json"),
}
NAMED = ("podman", "--version")
VERSION: Mapping[str, tuple[str, ...]] = {
    "docker": ("docker", "version", "--format", "{{json .}}"),
    "podman": ("podman", "version", "--format", "json"),
}


@dataclass(frozen=True, slots=True)
class Said:
    """`info` is empty when the engine itself did not answer; `done` then says why."""

    kind: str
    done: Completed
    info: Mapping[str, Any]
    version: str


def ask(system: System, *, brief: bool = False) -> tuple[Said, ...]:
    """Both at once. One whose program is not here is left out; nothing else is started for it.

    `brief`: of podman, which has no daemon that could be silent, only the version.
    """
    with ThreadPoolExecutor(len(INFO)) as pool:
        answers = pool.map(lambda kind: _named(system) if brief and kind == "podman" else _asked(system, kind), INFO)
        return tuple(answer for answer in answers if answer is not None)


def _named(system: System) -> Said | None:
    done = system.run(NAMED, timeout_s=TIMEOUT_S)
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return None if done.missing else Said("podman", done, {}, found[0] if found and done.ok else "")


def _asked(system: System, kind: str) -> Said | None:
    done = answered(system, INFO[kind])
    if done.missing:
        return None
    info = mapping(done.stdout)
    if info.get("ServerErrors") or not (info.get("host") or _is_of_docker(info)):
        return Said(kind, done, {}, "")
    said = info.get("ServerVersion") or _at(info, "version", "Version")
    return Said(kind, done, info, str(said or _version(system, kind)))


def _is_of_docker(info: Mapping[str, Any]) -> bool:
    """A daemon that does not answer leaves a skeleton of empty fields behind."""
    return any(info.get(key) for key in ("ServerVersion", "Runtimes", "DockerRootDir", "DiscoveredDevices", "Name"))


def _version(system: System, kind: str) -> str:
    done = answered(system, VERSION[kind])
    said = mapping(done.stdout)
    known = _at(said, "Server", "Version") or _at(said, "Client", "Version") or said.get("Version")
    return str(known or "") if done.ok else ""


def answered(system: System, question: tuple[str, ...]) -> Completed:
    """The answer to `question`; on a snapshot without it, that to the same question in another form."""
    if not isinstance(system, Recorded) or question in system.argvs:
        return system.run(question, timeout_s=TIMEOUT_S)
    alike = (argv for argv in system.argvs if _words(argv)[:2] == list(question[:2]))
    return system.run(next(alike, question), timeout_s=TIMEOUT_S)


def _words(argv: Sequence[str]) -> list[str]:
    """`sudo docker system info` and `/usr/bin/docker info` put the same question as `docker info`."""
    words = [word for word in argv if word not in ("sudo", "-n", "system", "container") and not word.startswith("-")]
    return [words[0].rpartition("/")[2], *words[1:]] if words else []


def mapping(text: str) -> Mapping[str, Any]:
    """JSON, YAML of podman, or the indented lines of `docker info`; empty for anything else."""
    begins = text.lstrip()
    if begins.startswith("{"):
        try:
            said = json.loads(begins)
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}
    if re.search(r"(?m)^host:\s*$", text):
        return _yaml(text)
    return _lines(text)


def _yaml(text: str) -> Mapping[str, Any]:
    import yaml  # at use: half of the time that a start takes

    try:
        said = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return said if isinstance(said, dict) else {}


_TEXTS: Mapping[str, str] = {
    "Server Version": "ServerVersion",
    "Cgroup Driver": "CgroupDriver",
    "Cgroup Version": "CgroupVersion",
    "Default Runtime": "DefaultRuntime",
    "Kernel Version": "KernelVersion",
    "Operating System": "OperatingSystem",
    "Docker Root Dir": "DockerRootDir",
    "Architecture": "Architecture",
    "Name": "Name",
}
_LISTS: Mapping[str, str] = {
    "Security Options": "SecurityOptions",
    "CDI spec directories": "CDISpecDirs",
    "Discovered Devices": "DiscoveredDevices",
}


def _lines(text: str) -> Mapping[str, Any]:
    """`docker info` for people: ` Key: value`, and lists one item a line below their key, two spaces deeper."""
    found: dict[str, Any] = {}
    heading, depth = "", 0
    for line in text.splitlines():
        bare, indent = line.strip(), len(line) - len(line.lstrip())
        if heading and indent > depth:
            if indent <= depth + 2:
                found[heading].append(bare)
            continue
        key, colon, value = bare.partition(":")
        heading = _LISTS.get(key, "") if colon and not value.strip() else ""
        depth = indent
        if heading:
            found[heading] = []
        elif colon and key in _TEXTS and value.strip():
            found.setdefault(_TEXTS[key], value.strip())
        elif colon and key == "Runtimes":
            found["Runtimes"] = {name: {} for name in value.split()}
    return _as_json(found)


def _as_json(found: dict[str, Any]) -> Mapping[str, Any]:
    if "SecurityOptions" in found:
        found["SecurityOptions"] = [f"name={option}" for option in found["SecurityOptions"]]
    if "DiscoveredDevices" in found:
        pairs = (item.partition(": ") for item in found["DiscoveredDevices"])
        found["DiscoveredDevices"] = [{"Source": source, "ID": name} for source, _, name in pairs]
    return found


def _at(said: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        inner = said.get(key) if isinstance(said, Mapping) else None
        if inner is None:
            return None
        said = inner
    return said
