"""Quadlet: a `.container` unit of Podman → Workload (podman-systemd.unit(5))."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import ContainerEngine, Form, Spot, Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers.draft import Draft
from selfhost.visibility.readers.run import filled, image_of
from selfhost.visibility.readers.run_options import Option, command_of, parse
from selfhost.visibility.readers.unit import Entry, entries
from selfhost.visibility.readers.words import Word

_USERS = re.compile(r"/\.config/containers/systemd/|/run/user/\d+/|/containers/systemd/users/")
_SYSTEM = re.compile(r"\A/(?:etc|usr/share|usr/lib|run)/containers/systemd/")

_WHOLE: Final = {
    "ContainerName": "name",
    "HealthCmd": "health-cmd",
    "HealthInterval": "health-interval",
    "HealthRetries": "health-retries",
    "HealthStartPeriod": "health-start-period",
    "HealthTimeout": "health-timeout",
    "LogDriver": "log-driver",
    "LogOpt": "log-opt",
    "StopTimeout": "stop-timeout",
    "Ulimit": "ulimit",
    "GroupAdd": "group-add",
    "Mount": "mount",
    "Network": "network",
    "PublishPort": "publish",
    "ShmSize": "shm-size",
    "Tmpfs": "tmpfs",
    "User": "user",
    "UserNS": "userns",
    "Volume": "volume",
    "Entrypoint": "entrypoint",
}
"""Keys whose value is one value of a run option."""
_WORDS: Final = {
    "AddCapability": "cap-add",
    "Annotation": "annotation",
    "DropCapability": "cap-drop",
    "Environment": "env",
    "EnvironmentFile": "env-file",
    "Label": "label",
}
"""Keys that hold several, split at blanks."""
_LISTS: Final = (
    "AddDevice", "GroupAdd", "LogOpt", "Mount", "Network", "PodmanArgs", "PublishPort", "Tmpfs", "Ulimit", "Volume",
)  # fmt: skip
_RESET: Final = frozenset({*_WORDS, *_LISTS})
"""Lists: an empty assignment empties them (systemd.syntax(7))."""


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """The container of one unit. Raises InputError when there is no [Container] section."""
    found = _kept([entry for entry in entries(text) if entry.section == "Container"])
    if "[Container]" not in text:
        raise InputError(
            f"{path} has no [Container] section",
            why="That section is what Quadlet turns into a container; without it the unit is not generated.",
            fix=("name the unit that holds it, or ask Podman:\n/usr/lib/podman/quadlet -dryrun -user",),
            id="CF056",
            place=Place(path=path),
        )
    draft = Draft(files=files)
    image = ""
    argv: tuple[str, ...] = ()
    for entry in found:
        if entry.key == "Image":
            image = image_of(entry.word())
            draft.mark("image", entry.word())
        elif entry.key == "Exec":
            argv = _argv(draft, entry)
        else:
            for option in _options(entry):
                draft.take(option)
    draft.at["name"] = _head(text)
    _named(draft)
    _group(draft, found)
    name = draft.single.get("name") or PurePosixPath(path).stem
    draft.single["restart"] = _restart(entries(text))
    said = Workload(
        name=name,
        argv=argv,
        form=Form.QUADLET,
        container_engine=ContainerEngine.PODMAN,
        image=image,
        rootless=rootless(path),
        path=path,
    )
    return (filled(said, draft),)


def rootless(path: str) -> bool | None:
    """By the folder that Podman looks for the unit in."""
    if _USERS.search(path):
        return True
    return False if _SYSTEM.match(path) else None


def _kept(found: Sequence[Entry]) -> list[Entry]:
    """Without what a later empty assignment of the same list takes back."""
    kept: list[Entry] = []
    for entry in found:
        if entry.key in _RESET and not entry.text.strip():
            kept = [other for other in kept if other.key != entry.key]
        else:
            kept.append(entry)
    return kept


def _head(text: str) -> Spot:
    lines = text.split("\n")
    return Spot(line=next((number for number, line in enumerate(lines, 1) if line.strip() == "[Container]"), 1))


def _argv(draft: Draft, entry: Entry) -> tuple[str, ...]:
    words = [_undollared(word) for word in entry.words()]
    for key in [key for key in draft.at if key.startswith("argv.")]:
        del draft.at[key]
    for number, word in enumerate(words):
        draft.mark(f"argv.{number}", word)
    return tuple(word.text for word in words)


def _restart(found: Sequence[Entry]) -> str:
    """With the number of starts that systemd tries in a row, where the unit bounds them."""
    said = {(entry.section, entry.key): entry.text for entry in found}
    policy, tries = said.get(("Service", "Restart"), ""), said.get(("Unit", "StartLimitBurst"), "")
    return f"{policy}:{tries}" if policy == "on-failure" and tries.isdecimal() else policy


def _named(draft: Draft) -> None:
    """Networks and volumes that are units themselves, by the names that those units give them."""
    network = draft.single.get("network", "")
    if network.endswith(".network"):
        draft.single["network"] = _name_in(draft, network, "NetworkName") or network
    for number, mount in enumerate(draft.mounts):
        if mount.source.endswith(".volume") and "/" not in mount.source:
            source = _name_in(draft, mount.source, "VolumeName") or mount.source
            draft.mounts[number] = replace(mount, source=source)


def _name_in(draft: Draft, unit: str, key: str) -> str:
    text = draft.files.text(unit)
    return next((entry.word().text for entry in reversed(entries(text or "")) if entry.key == key), "")


def _group(draft: Draft, found: Sequence[Entry]) -> None:
    group = next((entry.text for entry in reversed(found) if entry.key == "Group"), "")
    if group and "user" in draft.single:
        draft.single["user"] += f":{group}"


def _options(entry: Entry) -> list[Option]:
    """A key of the unit as the options of `podman run` that Quadlet makes of it."""
    if entry.key in _WHOLE:
        return [_option(_WHOLE[entry.key], _undollared(entry.word()))]
    if entry.key in _WORDS:
        return [_option(_WORDS[entry.key], word) for word in _environment_files(entry)]
    special = _SPECIAL.get(entry.key)
    return special(entry) if special else []


def _environment_files(entry: Entry) -> list[Word]:
    """`-file` is read when it is there."""
    words = [_undollared(word) for word in entry.words()]
    if entry.key != "EnvironmentFile":
        return words
    return [word.from_(1) if word.text.startswith("-") else word for word in words]


def _undollared(word: Word) -> Word:
    """Every value becomes a word of ExecStart=, where systemd makes `$` of `$$`."""
    if "$$" not in word.text:
        return word
    pieces = [replace(piece, text=piece.text.replace("$$", "$")) for piece in word.pieces]
    return replace(word, text=word.text.replace("$$", "$"), pieces=pieces)


def _option(name: str, value: Word) -> Option:
    return Option(name=name, value=value, word=value)


def _add_device(entry: Entry) -> list[Option]:
    """`-/dev/x` is handed in when it is there."""
    word = entry.word()
    return [_option("device", word.from_(1) if word.text.startswith("-") else word)]


def _podman_args(entry: Entry) -> list[Option]:
    return parse([_undollared(word) for word in entry.words()], only_options=True).options


def _global_args(entry: Entry) -> list[Option]:
    options, _ = command_of(entry.words())
    return [option for option in options if option.name in ("runtime", "hooks-dir")]


def _security(entry: Entry, option: str) -> list[Option]:
    return [_option("security-opt", _text(entry, option))]


def _label_disable(entry: Entry) -> list[Option]:
    return _security(entry, "label=disable") if _is_true(entry) else []


def _label_type(entry: Entry) -> list[Option]:
    return _security(entry, f"label=type:{entry.text}")


def _seccomp(entry: Entry) -> list[Option]:
    return _security(entry, f"seccomp={entry.text}")


def _no_new_privileges(entry: Entry) -> list[Option]:
    return _security(entry, "no-new-privileges") if _is_true(entry) else []


def _switch(name: str) -> Callable[[Entry], list[Option]]:
    def made(entry: Entry) -> list[Option]:
        word = _text(entry, "true" if _is_true(entry) else "false")
        return [_option(name, word)]

    return made


def _text(entry: Entry, text: str) -> Word:
    return Word(text, entry.line, column=entry.column)


def _is_true(entry: Entry) -> bool:
    return entry.text.strip().lower() in ("1", "yes", "true", "on")


_SPECIAL: Final[dict[str, Callable[[Entry], list[Option]]]] = {
    "AddDevice": _add_device,
    "GlobalArgs": _global_args,
    "NoNewPrivileges": _no_new_privileges,
    "PodmanArgs": _podman_args,
    "ReadOnly": _switch("read-only"),
    "RunInit": _switch("init"),
    "SeccompProfile": _seccomp,
    "SecurityLabelDisable": _label_disable,
    "SecurityLabelType": _label_type,
}
