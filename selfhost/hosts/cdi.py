"""CDI specifications: the files that tell an engine what a named device brings into a container.

The format is that of github.com/cncf-tags/container-device-interface, SPEC.md.
"""

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from selfhost.core.recorded import Recorded
from selfhost.core.system import System
from selfhost.hosts.glance import exists, names
from selfhost.shapes.surroundings import CdiDevice, CdiSpec

FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
_LIBRARY = re.compile(r"/lib[\w-]+\.so\.(\d{3,}\.\d+(?:\.\d+)?)$")
_SAID = re.compile(r"--host-driver-version=(\d{3,}\.\d+(?:\.\d+)?)$")


def read(system: System, more: Iterable[str] = ()) -> tuple[CdiSpec, ...]:
    """Every file in the usual folders and in `more`. /run and /var/run are mostly one folder, which is read once."""
    seen: dict[tuple[str, str], CdiSpec] = {}
    for folder in dict.fromkeys((*FOLDERS, *(path.rstrip("/") for path in more))):
        for name in names(system, folder):
            if name.endswith((".json", ".yaml", ".yml")):
                path = f"{folder}/{name}"
                text, fault = _text(system, path)
                place = path.replace("/var/run/", "/run/")
                if (place, text) not in seen:
                    seen[place, text] = _spec(system, path, text) if not fault else _faulty(path, fault)
    return tuple(seen.values()) or _listed(system)


def _text(system: System, path: str) -> tuple[str, str]:
    try:
        return system.read(path), ""
    except OSError as error:
        return "", f"it cannot be read: {error.strerror or error}"


def _faulty(path: str, fault: str) -> CdiSpec:
    return CdiSpec(file=path, kind="", version="", fault=fault)


def _spec(system: System, path: str, text: str) -> CdiSpec:
    tree, fault = _parsed(path, text)
    fault = fault or _form(tree)
    if fault:
        return _faulty(path, fault)
    common = _edits(tree)
    devices = [one for one in tree["devices"] if isinstance(one, Mapping)]
    shared = [str(node["path"]) for node in _entries(common, "deviceNodes") if node.get("path")]
    all_edits = [common, *(_edits(one) for one in devices)]
    kind = str(tree["kind"])
    return CdiSpec(
        file=path,
        kind=kind,
        version=str(tree.get("cdiVersion") or ""),
        devices=tuple(
            CdiDevice(
                name=f"{kind}={one.get('name', '')}",
                file=path,
                nodes=tuple(dict.fromkeys((*shared, *_paths(_edits(one))))),
            )
            for one in devices
        ),
        driver=_driver(all_edits),
        missing=tuple(dict.fromkeys(path for path in _host_paths(all_edits) if _is_missing(system, path))),
        stale=tuple(dict.fromkeys(said for edits in all_edits for said in _frozen(system, edits))),
    )


def _parsed(path: str, text: str) -> tuple[Any, str]:
    if path.endswith(".json"):
        try:
            return json.loads(text), ""
        except ValueError as error:
            return None, f"it is not JSON: {error}"
    import yaml  # at use: only where there is such a file

    try:
        return yaml.safe_load(text), ""
    except yaml.YAMLError as error:
        return None, f"it is not YAML: {str(error).splitlines()[0]}"


def _form(tree: Any) -> str:
    if not isinstance(tree, Mapping):
        return "it holds no specification"
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", str(tree.get("kind") or "")):
        return "it names no kind such as nvidia.com/gpu"
    if not isinstance(tree.get("devices"), list) or not tree["devices"]:
        return "it names no device"
    return ""


def _edits(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    edits = holder.get("containerEdits")
    return edits if isinstance(edits, Mapping) else {}


def _entries(edits: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = edits.get(key)
    return [one for one in entries if isinstance(one, Mapping)] if isinstance(entries, list) else []


def _paths(edits: Mapping[str, Any]) -> Iterator[str]:
    return (str(node["path"]) for node in _entries(edits, "deviceNodes") if node.get("path"))


def _host_paths(all_edits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for edits in all_edits:
        for node in _entries(edits, "deviceNodes"):
            yield str(node.get("hostPath") or node.get("path") or "")
        for mount in _entries(edits, "mounts"):
            yield str(mount.get("hostPath") or "")
        for hook in _entries(edits, "hooks"):
            yield str(hook.get("path") or "")


def _is_missing(system: System, path: str) -> bool:
    """A snapshot seldom holds every folder of its machine: one that it does not show says nothing."""
    if not path.startswith("/") or exists(system, path):
        return False
    shown = "/dev" if path.startswith("/dev/") else posixpath.dirname(path)
    return not isinstance(system, Recorded) or bool(names(system, shown))


def _driver(all_edits: Sequence[Mapping[str, Any]]) -> str:
    """The version that most of the mounted libraries carry in their names; the hook's own word where none does."""
    mounts = (str(mount.get("hostPath") or "") for edits in all_edits for mount in _entries(edits, "mounts"))
    count = Counter(found[1] for path in mounts if (found := _LIBRARY.search(path)))
    if count:
        return count.most_common(1)[0][0]
    words = (str(word) for edits in all_edits for hook in _entries(edits, "hooks") for word in hook.get("args") or ())
    return next((found[1] for word in words if (found := _SAID.search(word))), "")


def _frozen(system: System, edits: Mapping[str, Any]) -> Iterator[str]:
    """AMD's specifications write device numbers down; that of /dev/kfd is another one after some boots."""
    for node in _entries(edits, "deviceNodes"):
        path, major, minor = str(node.get("hostPath") or node.get("path") or ""), node.get("major"), node.get("minor")
        if not isinstance(major, int) or not isinstance(minor, int) or not path:
            continue
        try:
            here = system.stat(path)
        except OSError:
            continue
        if here.kind in ("c", "b") and (here.major, here.minor) != (major, minor):
            yield f"{path} is {here.major}:{here.minor} here, {major}:{minor} in the file"


def _listed(system: System) -> tuple[CdiSpec, ...]:
    """`nvidia-ctk cdi list` of a snapshot that holds no file: names alone, one a line; INFO lines are not names."""
    if not isinstance(system, Recorded):
        return ()
    asked = next((argv for argv in system.argvs if "cdi" in argv and "list" in argv), None)
    text = system.run(asked, timeout_s=1).stdout if asked else ""
    found = [line.strip() for line in text.splitlines() if re.fullmatch(r"[\w.-]+/[\w.-]+=\S+", line.strip())]
    kinds = dict.fromkeys(name.partition("=")[0] for name in found)
    file = " ".join(asked or ())
    return tuple(
        CdiSpec(
            file=file,
            kind=kind,
            version="",
            devices=tuple(CdiDevice(name=name, file=file) for name in found if name.startswith(f"{kind}=")),
        )
        for kind in kinds
    )
