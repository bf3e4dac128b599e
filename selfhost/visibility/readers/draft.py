"""A container as the options of a run line describe it, collected one option at a time."""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from selfhost.shapes.workload import CdiName, DevicePath, DeviceRequest, EnvSource, Mount, Spot
from selfhost.visibility.files import Files
from selfhost.visibility.readers import life
from selfhost.visibility.readers.life import Life
from selfhost.visibility.readers.run_options import Option
from selfhost.visibility.readers.sizes import size_bytes
from selfhost.visibility.readers.words import Word

_CDI = re.compile(r"(?P<kind>[A-Za-z][\w.-]*/[A-Za-z0-9][\w.-]*)=(?P<name>.+)\Z")
"""cdi.dev: vendor/class=device."""
_ENV_LINE = re.compile(r"(?P<name>[^\s=#][^=]*?)(?P<equals>=(?P<value>.*))?\s*\Z")
_KEEP_GROUPS = "run.oci.keep_original_groups=1"


@dataclass(slots=True, kw_only=True)
class Draft:
    """Fields as in Workload. `opaque` gathers what is asked for but known only at run time."""

    files: Files
    env: dict[str, str] = field(default_factory=dict)
    env_sources: dict[str, EnvSource] = field(default_factory=dict)
    at: dict[str, Spot] = field(default_factory=dict)
    devices: list[DevicePath] = field(default_factory=list)
    cdi: list[CdiName] = field(default_factory=list)
    requests: list[DeviceRequest] = field(default_factory=list)
    mounts: list[Mount] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=dict)
    single: dict[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    privileged: bool = False
    detached: bool = False
    shm_bytes: int | None = None
    opaque: list[str] = field(default_factory=list)
    env_files: list[str] = field(default_factory=list)
    life: Life = field(default_factory=Life)

    def take(self, option: Option) -> None:
        """Take in one option; one that says nothing about devices, limits or variables is passed over."""
        if option.name == "privileged":
            self.privileged = option.on
            self.mark("privileged", option.word)
            return
        if option.name == "detach":
            self.detached = option.on
            return
        if option.value is None or option.name in _SWITCHES:
            key = life.switch(self.life, option.name, on=option.on)
            if key:
                self.mark(key, option.word)
            return
        if option.name in life.OPTIONS:
            self._live(option, option.value)
            return
        taker = _TAKERS.get(option.name)
        if taker is None:
            return
        if option.value.dynamic and option.name not in _DYNAMIC_TOO:
            self.opaque.append(f"--{option.name}")
            return
        taker(self, option)

    def _live(self, option: Option, value: Word) -> None:
        if value.dynamic:
            return
        key = life.take(self.life, option.name, value.text)
        if key:
            self.mark(key, option.word)

    def mark(self, key: str, word: Word) -> None:
        self.at[key] = Spot(line=word.line, column=word.column)

    def variable(self, name: str, value: str | None, spot: Spot, source: EnvSource | None = None) -> None:
        """A later value replaces an earlier one; None is a value that the text does not hold."""
        self.env.pop(name, None)
        self.env_sources.pop(name, None)
        self.at[f"env.{name}"] = spot
        if value is not None:
            self.env[name] = value
        if source is not None:
            self.env_sources[name] = source

    def env_file(self, path: str, spot: Spot) -> None:
        """Its lines as docker reads them: no quotes, no expansion; a name alone is passed through."""
        text = self.files.text(path)
        self.env_files.append(path)
        if text is None:
            self.opaque.append(f"--env-file {path}")
            return
        own = self._own()
        for number, line in enumerate(text.split("\n"), 1):
            match = _ENV_LINE.match(line.lstrip())
            if match is None or f"env.{match['name']}" in own:
                continue
            there = Spot(line=number, path=path)
            if match["equals"]:
                self.variable(match["name"], match["value"], there, EnvSource.ENV_FILE)
            else:
                self.variable(match["name"], None, there, EnvSource.PASSED_THROUGH)
        self.at.setdefault("env_file", spot)

    def _own(self) -> set[str]:
        """Variables of the line itself, which win over those of a file wherever they stand."""
        return {
            key
            for key, spot in self.at.items()
            if key.startswith("env.") and self.env_sources.get(key[4:]) is not EnvSource.ENV_FILE and not spot.path
        }


def _single(draft: Draft, option: Option) -> None:
    if option.value is not None:
        key = option.name.replace("-", "_")
        draft.single[key] = option.value.text
        draft.mark(key, option.word)


def _listed(draft: Draft, option: Option) -> None:
    if option.value is not None:
        key = option.name.replace("-", "_")
        found = draft.lists.setdefault(key, [])
        draft.mark(f"{key}.{len(found)}", option.word)
        found.append(option.value.text)


def _env(draft: Draft, option: Option) -> None:
    if option.value is None:
        return
    name, equals, value = option.value.text.partition("=")
    spot = Spot(line=option.word.line, column=option.word.column)
    if "$" in name or "`" in name:
        draft.opaque.append("--env")
    elif not equals:
        draft.variable(name, None, spot, EnvSource.PASSED_THROUGH)
    elif option.value.dynamic:
        itself = value in (f"${name}", f"${{{name}}}")
        draft.variable(name, None, spot, EnvSource.PASSED_THROUGH if itself else EnvSource.REFERENCE)
    else:
        draft.variable(name, value, spot)


def _env_file(draft: Draft, option: Option) -> None:
    if option.value is not None:
        draft.env_file(option.value.text, Spot(line=option.word.line, column=option.word.column))


def device(draft: Draft, text: str, word: Word) -> None:
    """`/dev/x[:/dev/y[:rwm]]`, or a CDI name."""
    match = _CDI.match(text)
    if match and not text.startswith("/"):
        key = f"cdi.{len(draft.cdi)}"
        draft.cdi.append(CdiName(kind=match["kind"], name=match["name"], key=key))
    else:
        key = f"devices.{len(draft.devices)}"
        source, _, rest = text.partition(":")
        target = rest.partition(":")[0]
        draft.devices.append(DevicePath(source=source, target=target if target.startswith("/") else "", key=key))
    draft.mark(key, word)


def _device(draft: Draft, option: Option) -> None:
    if option.value is not None:
        device(draft, option.value.text, option.word)


def _gpus(draft: Draft, option: Option) -> None:
    if option.value is None:
        return
    key = f"requests.{len(draft.requests)}"
    draft.requests.append(request(option.value.text, key=key))
    draft.mark(key, option.word)


def request(text: str, *, key: str) -> DeviceRequest:
    """As docker/cli opts/gpus.go: comma-separated fields; `device=0,1` without inner quotes is id 0 and count 1."""
    driver, count = "", None
    ids: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ("gpu",)
    for part in _fields(text):
        name, equals, value = part.partition("=")
        if not equals or name == "count":
            count = _count(value if equals else name)
        elif name == "device":
            ids = tuple(value.split(","))
        elif name == "driver":
            driver = value
        elif name == "capabilities":
            capabilities = (*value.split(","), "gpu")
    if count is None and not ids:
        count = 1
    return DeviceRequest(driver=driver, count=count, ids=ids, capabilities=capabilities, spelling="--gpus", key=key)


def _count(text: str) -> int | None:
    if text == "all":
        return -1
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None


def _fields(text: str) -> list[str]:
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return [text]


def _shm_size(draft: Draft, option: Option) -> None:
    if option.value is not None:
        draft.shm_bytes = size_bytes(option.value.text)
        draft.mark("shm_size", option.word)


def _entrypoint(draft: Draft, option: Option) -> None:
    if option.value is not None:
        draft.entrypoint = (option.value.text,) if option.value.text else ()
        draft.mark("entrypoint", option.word)


def _volume(draft: Draft, option: Option) -> None:
    if option.value is None:
        return
    first, colon, rest = option.value.text.partition(":")
    target, _, flags = rest.partition(":")
    if not colon:
        first, target = "", first
    kind = "bind" if first.startswith(("/", ".", "~", "$")) else "volume"
    _mount(draft, option, Mount(target=target, source=first, kind=kind, read_only="ro" in flags.split(",")))


def _tmpfs(draft: Draft, option: Option) -> None:
    if option.value is not None:
        target, _, flags = option.value.text.partition(":")
        sizes = [size_bytes(flag[5:]) for flag in flags.split(",") if flag.startswith("size=")]
        _mount(draft, option, Mount(target=target, kind="tmpfs", size_bytes=sizes[-1] if sizes else None))


def _long_mount(draft: Draft, option: Option) -> None:
    if option.value is None:
        return
    said = {}
    for part in _fields(option.value.text):
        name, equals, value = part.partition("=")
        said[name.lower()] = value if equals else "true"
    target = said.get("target") or said.get("dst") or said.get("destination") or ""
    source = said.get("source") or said.get("src") or ""
    read_only = (said.get("readonly") or said.get("ro") or "false").lower() in ("true", "1")
    size = size_bytes(said.get("tmpfs-size") or said.get("tmpfs_size") or "")
    kind = said.get("type", "volume")
    _mount(draft, option, Mount(target=target, source=source, kind=kind, read_only=read_only, size_bytes=size))


def _mount(draft: Draft, option: Option, mount: Mount) -> None:
    key = f"mounts.{len(draft.mounts)}"
    draft.mounts.append(replace(mount, key=key))
    draft.mark(key, option.word)


def _annotation(draft: Draft, option: Option) -> None:
    """The way of crun to keep the caller's groups, which podman spells `--group-add keep-groups`."""
    if option.value is not None and option.value.text == _KEEP_GROUPS:
        found = draft.lists.setdefault("group_add", [])
        draft.mark(f"group_add.{len(found)}", option.word)
        found.append("keep-groups")


_TAKERS: Final[dict[str, Callable[[Draft, Option], None]]] = {
    "annotation": _annotation,
    "cap-add": _listed,
    "cap-drop": _listed,
    "device": _device,
    "device-cgroup-rule": _listed,
    "entrypoint": _entrypoint,
    "env": _env,
    "env-file": _env_file,
    "gpus": _gpus,
    "group-add": _listed,
    "hooks-dir": _listed,
    "ipc": _single,
    "mount": _long_mount,
    "name": _single,
    "network": _single,
    "pid": _single,
    "publish": _listed,
    "restart": _single,
    "runtime": _single,
    "security-opt": _listed,
    "shm-size": _shm_size,
    "tmpfs": _tmpfs,
    "user": _single,
    "userns": _single,
    "volume": _volume,
}
_SWITCHES: Final = frozenset({"init", "read-only", "no-healthcheck"})
_DYNAMIC_TOO: Final = frozenset({"env", "volume", "mount", "tmpfs", "publish"})
"""Worth reading although a part is known only at run time: the rest says enough."""
