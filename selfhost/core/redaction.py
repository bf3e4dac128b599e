"""A snapshot that may be shown to strangers: who, where and which piece of hardware replaced. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from selfhost.core.device_env import only_devices
from selfhost.core.pseudonyms import Pseudonyms
from selfhost.core.redact import BLOT, is_secret
from selfhost.core.redaction_objects import container, docker_info, host, kubernetes, podman_info
from selfhost.core.redaction_text import homes, is_public, patterns, serials, user
from selfhost.core.snapshot_form import SCHEMA

_HOSTNAME_FILES = ("/etc/hostname", "/proc/sys/kernel/hostname", "/run/host/hostname")
_SERIAL_FILE = re.compile(r"(?i).*/(?:\w*serial(?:[-_]?number)?|asset_tag|product_uuid|chassis_asset_tag)")
_UNIQUE = re.compile(r"(?m)^unique_id (\d+)$")
# Words that are names of people or machines on some machine, and of something else in every text.
_EVERYBODY = frozenset(
    """root ubuntu debian admin user users docker podman core centos fedora rocky nobody guest test node host server
    localhost default gpu nvidia amd intel cuda rocm linux kubernetes vllm app data home local machine main master
    worker control-plane public shared system kernel driver video render""".split()  # noqa: SIM905 - a list of words
)
_SYSTEM_SPACES = ("kube-system", "kube-public", "gpu-operator", "nvidia-gpu-operator", "gpu-resources")
_SHARES = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.glusterfs",
)


def redacted(snapshot: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """The snapshot with other names, and how many different things of which kind were replaced."""
    names = Pseudonyms()
    for text in _texts(snapshot):
        for long in re.findall(r"(?<![0-9a-fA-F])[0-9a-f]{64}(?![0-9a-fA-F])", text):
            names.of("id", long)  # first, so that the short forms are found again
    whole = _narrowed(snapshot, names)
    literal = _literals(snapshot, whole, names)
    pattern = patterns(names)

    def clean(text: str) -> str:
        return pattern(literal(text))

    walked = _walked(whole, clean)
    if "errors" in whole:  # names of errnos: a path that sounds like a secret does not make one of its reason
        walked["errors"] = {clean(path): reason for path, reason in whole["errors"].items()}
    return {"schema": SCHEMA, **walked}, names.replaced


def _narrowed(snapshot: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """Places whose form is known, cut down to what may go along."""
    kept: dict[str, Any] = {key: value for key, value in snapshot.items() if key != "schema"}
    kept["files"] = {path: _file(path, text, names) for path, text in snapshot.get("files", {}).items()}
    kept["env"] = {
        name: _variable(name, value, names) for name, value in snapshot.get("env", {}).items() if not is_secret(name)
    }
    for engine, narrow in (("docker", docker_info), ("podman", podman_info)):
        held = snapshot.get(engine)
        if not held:
            continue
        kept[engine] = {key: held[key] for key in ("version",) if key in held}
        if "info" in held:
            kept[engine]["info"] = narrow(held["info"], names)
        if "containers" in held:
            kept[engine]["containers"] = [container(one, names) for one in held["containers"]]
    if snapshot.get("kubernetes"):
        kept["kubernetes"] = {"objects": kubernetes(snapshot["kubernetes"].get("objects", ()))}
    kept["commands"] = [_command(entry, names) for entry in snapshot.get("commands", ())]
    return {key: value for key, value in kept.items() if value or key in snapshot}


def _file(path: str, text: str, names: Pseudonyms) -> str:
    name = path.rpartition("/")[2]
    if path.startswith("/proc/") and name == "environ":
        return only_devices(text)
    if path in _HOSTNAME_FILES:
        return text.replace(text.strip(), host(names, text.strip())) if text.strip() else text
    if _SERIAL_FILE.fullmatch(path):
        return names.of("serial number", text.strip()) + "\n" if re.search(r"\d", text) else text
    form = _FORMS.get(path) or _FORMS.get(name)
    return form(text, names) if form else text


def _docker_config(text: str, names: Pseudonyms) -> str:
    del names
    return json.dumps({key: value for key, value in _json(text).items() if key == "currentContext"})


def _mounts(text: str, names: Pseudonyms) -> str:
    return "".join(_mount(line, names) for line in text.splitlines(keepends=True))


def _resolver(text: str, names: Pseudonyms) -> str:
    return re.sub(r"(?m)^(search|domain)\s+(.*)$", lambda match: f"{match[1]} {names.of('host', match[2])}", text)


def _mount(line: str, names: Pseudonyms) -> str:
    """Where a share comes from, and as whom it is mounted, is nobody's business."""
    before, dash, after = line.partition(" - ")
    fields = after.split()
    if len(fields) < 2 or fields[0] not in _SHARES:
        return line
    return f"{before}{dash}{fields[0]} {names.of('share', fields[1])} rw\n"


_FORMS: Mapping[str, Callable[[str, Pseudonyms], str]] = {
    "config.json": _docker_config,
    "mountinfo": _mounts,
    "/etc/resolv.conf": _resolver,
}


def _variable(name: str, value: str, names: Pseudonyms) -> str:
    if name.lower() == "no_proxy":
        return ",".join(
            part if _is_plain(part.strip()) else names.of("host", part.strip()) for part in value.split(",")
        )
    if name == "HOSTNAME":
        return host(names, value) if value else value
    return user(names, value) if name in ("USER", "LOGNAME", "SUDO_USER") and value not in _EVERYBODY else value


def _is_plain(part: str) -> bool:
    return not part or is_public(part) or re.fullmatch(r"[\d./:a-fA-F]+", part) is not None


def _command(entry: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """Engines' and Kubernetes' objects are cut down here too; other output keeps its form."""
    argv = [str(word) for word in entry.get("argv", ())]
    said = str(entry.get("stdout", ""))
    narrowed = _narrowed_output(argv, said, names)
    return dict(entry) if narrowed is None else {**entry, "stdout": narrowed}


def _narrowed_output(argv: list[str], said: str, names: Pseudonyms) -> str | None:
    """None where the form is none of those that are known."""
    program = argv[0].rpartition("/")[2] if argv else ""
    if program in ("docker", "podman", "kubectl", "nerdctl"):
        return _narrowed_objects(program, said, names)
    if program == "nvidia-smi" and any("serial" in word and "--query" in word for word in argv):
        return _without_column(said, "serial", names)
    if program == "hostname" and said.strip():
        return host(names, said.strip()) + "\n"
    return None


def _narrowed_objects(program: str, said: str, names: Pseudonyms) -> str | None:
    try:
        held = json.loads(said)
    except ValueError:
        return None
    if isinstance(held, list):
        return json.dumps([container(one, names) for one in held if isinstance(one, dict)])
    if not isinstance(held, dict):
        return None
    if program == "kubectl":
        return json.dumps((kubernetes([held]) or [{}])[0])
    if "Client" in held or "Version" in held:
        return None  # of `version`: numbers
    return json.dumps(podman_info(held, names) if "host" in held else docker_info(held, names))


def _without_column(text: str, column: str, names: Pseudonyms) -> str:
    """CSV with a header."""
    head, *rows = text.splitlines() or [""]
    places = [at for at, cell in enumerate(head.split(", ")) if cell.strip() == column]
    lines = [head]
    for row in rows:
        cells = row.split(", ")
        for at in places:
            if at < len(cells) and re.search(r"\d", cells[at]):
                cells[at] = names.of("serial number", cells[at].strip())
        lines.append(", ".join(cells))
    return "\n".join(lines) + "\n"


def _literals(snapshot: Mapping[str, Any], narrowed: Mapping[str, Any], names: Pseudonyms) -> Callable[[str], str]:
    """Names that were learnt in one place and may stand in any other."""
    known: dict[str, str] = {}
    for name in _hosts(snapshot):
        if _is_telling(name, snapshot):
            known[name] = host(names, name)
    for kind, name in _cluster_names(snapshot):
        if _is_telling(name, snapshot) and name not in _SYSTEM_SPACES:
            known[name] = names.of(kind, name)
    for name in _users(snapshot):
        if _is_telling(name, snapshot):
            known[name] = user(names, name)
    for text in _texts(narrowed):
        known.update((serial, names.of("serial number", serial)) for serial in serials(text) if len(serial) >= 6)
    known.update(_unique(snapshot, names))
    if not known:
        return lambda text: text
    choice = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    found = re.compile(rf"(?<![A-Za-z0-9])(?:{choice})(?![A-Za-z0-9])")
    return lambda text: found.sub(lambda match: known[match[0]], text)


def _hosts(snapshot: Mapping[str, Any]) -> Iterator[str]:
    for path in _HOSTNAME_FILES:
        yield from _with_short(snapshot.get("files", {}).get(path, "").strip())
    yield from _with_short(snapshot.get("env", {}).get("HOSTNAME", ""))
    yield from _with_short(str(snapshot.get("docker", {}).get("info", {}).get("Name", "")))
    yield from _with_short(str(snapshot.get("podman", {}).get("info", {}).get("host", {}).get("hostname", "")))


def _cluster_names(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of nodes, pods and namespaces, by what they name."""
    for one in snapshot.get("kubernetes", {}).get("objects", ()):
        for item in one.get("items", ()) if isinstance(one.get("items"), list) else (one,):
            metadata = item.get("metadata") if isinstance(item, Mapping) else None
            if not isinstance(metadata, Mapping):
                continue
            kind = str(item.get("kind", one.get("kind", ""))).removesuffix("List").lower()
            if kind in ("node", "pod", "namespace"):
                yield "host" if kind == "node" else kind, str(metadata.get("name", ""))
            yield "namespace", str(metadata.get("namespace", ""))


def _with_short(name: str) -> Iterator[str]:
    yield name
    if not re.fullmatch(r"[\d.]+", name):
        yield name.partition(".")[0]


def _users(snapshot: Mapping[str, Any]) -> Iterator[str]:
    env, files = snapshot.get("env", {}), snapshot.get("files", {})
    yield from (env.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))
    for text in _texts(snapshot):
        yield from homes(text)
    for line in files.get("/etc/passwd", "").splitlines():
        fields = line.split(":")
        if len(fields) > 4 and fields[2].isdecimal() and 1000 <= int(fields[2]) < 65534:
            yield fields[0]
            yield fields[4].strip(",")
    for line in files.get("/etc/group", "").splitlines():
        yield from line.rpartition(":")[2].split(",")


def _is_telling(name: str, snapshot: Mapping[str, Any]) -> bool:
    """Whether it may be replaced wherever it stands: long enough, and no word of the kernel's own paths."""
    if len(name) < 3 or name.lower() in _EVERYBODY or is_public(name):
        return False
    paths = (path for key in ("files", "nodes", "links") for path in snapshot.get(key, {}))
    return not any(f"/{name}/" in f"{path}/" and path.startswith(("/sys/", "/proc/", "/dev/")) for path in paths)


def _unique(snapshot: Mapping[str, Any], names: Pseudonyms) -> dict[str, str]:
    """AMD's serial number of a card: decimal in the topology, hexadecimal in sysfs and from its tools. One number."""
    found = {int(number) for text in snapshot.get("files", {}).values() for number in _UNIQUE.findall(text)}
    for path, text in snapshot.get("files", {}).items():
        if path.endswith("/unique_id") and re.fullmatch(r"(?:0x)?[0-9a-fA-F]{8,16}\s*", text):
            found.add(int(text.strip(), 16))
    known: dict[str, str] = {}
    for number in sorted(found - {0}):
        other = 2**60 + int(names.of("serial number", f"unique {number}"))
        for form in ("{:d}", "{:x}", "{:016x}", "{:X}", "{:016X}", "0x{:x}", "0x{:X}", "0x{:016x}", "GPU-{:x}"):
            known[form.format(number)] = form.format(other)
    return known


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _walked(value: Any, clean: Callable[[str], str], key: str = "") -> Any:
    """Every text in it, the keys too: a path names a home."""
    if isinstance(value, str):
        return BLOT if key and is_secret(key) and value else clean(value)
    if isinstance(value, Mapping):
        return {clean(str(name)): _walked(item, clean, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walked(item, clean) for item in value]
    return value


def _json(text: str) -> Mapping[str, Any]:
    try:
        held = json.loads(text)
    except ValueError:
        return {}
    return held if isinstance(held, Mapping) else {}
