"""Quadlet's files: those of the bundle, copied to where podman's generator looks, and how they are known as ours."""

import re
from collections.abc import Mapping
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.files import write_atomic
from selfhost.core.system import System
from selfhost.runtimes import containers

KINDS = (".container", ".network", ".volume")
_LABEL = re.compile(r'^Label=\s*"?([\w.-]+)=(.*?)"?\s*$', re.MULTILINE)
_PORT = re.compile(r"^PublishPort=(?:\[?[0-9a-fA-F.:]+\]?:)?(\d+):\d+", re.MULTILINE)
_ADDED = "# Below: added by selfhost when it started this unit; the text above is the rendered file's."


def folder_of(system: System) -> Path:
    """podman-systemd.unit(5), search paths."""
    env = system.env
    if said := env.get("QUADLET_UNIT_DIRS"):
        return Path(said.split(":")[0])
    if system.ids.get("uid") == 0:
        return Path("/etc/containers/systemd")
    config = env.get("XDG_CONFIG_HOME") or f"{env.get('HOME', '')}/.config"
    return Path(config) / "containers" / "systemd"


def unit_path(folder: Path, name: str) -> Path:
    return folder / f"{containers.container_name(name)}.container"


def labels_in(text: str) -> dict[str, str]:
    """A later one of the same name counts."""
    return {found[1]: found[2] for found in _LABEL.finditer(text)}


def port_in(text: str) -> int | None:
    found = _PORT.search(text)
    return int(found[1]) if found else None


def text_of(path: Path) -> str:
    """Empty where there is none. Raises EnvironmentMissing for a link: what it points to is not ours to change."""
    if path.is_symlink():
        raise EnvironmentMissing(
            f"{path} is a link to {path.readlink()}",
            why="selfhost writes units as files of their own, and never through a link.",
            fix=(f"see who made it, then remove it:\nrm {path}",),
            id="RT083",
        )
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def install(source: Path, folder: Path, name: str, *, labels: Mapping[str, str], restart: str) -> None:
    """Copy the bundle's units and the user's drop-ins. `labels` and `restart` are added to the container's unit."""
    target = unit_path(folder, name)
    text_of(target)
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(source.parent.iterdir()) if _is_unit(path)}
    for other, text in files.items():
        if other != source.name:
            text_of(folder / other)
            write_atomic(folder / other, text, mode=0o644)
    for kept in _drop_ins(folder, name):
        kept.unlink()
    for drop_in in sorted((source.parent / "overrides" / f"{source.name}.d").glob("*.conf")):
        into = folder / f"{target.name}.d" / drop_in.name
        text_of(into)
        write_atomic(into, drop_in.read_text(encoding="utf-8"), mode=0o644)
    write_atomic(target, with_added(files[source.name], labels=labels, restart=restart), mode=0o644)


def with_added(text: str, *, labels: Mapping[str, str], restart: str) -> str:
    """Sections of one name are read as one, and a later setting counts: systemd.syntax(7)."""
    plain = text.partition(_ADDED)[0].rstrip("\n")
    lines = [plain, "", _ADDED, "[Container]", *(f"Label={name}={value}" for name, value in labels.items())]
    if restart:
        lines += ["[Service]", f"Restart={restart}"]
    return "\n".join(lines) + "\n"


def remove(folder: Path, name: str) -> tuple[str, ...]:
    """The units of a deployment that are ours, of networks and volumes too; the volumes themselves stay."""
    gone = []
    container = containers.container_name(name)
    own = (folder / f"{container}.container", folder / f"{container}.network", *folder.glob(f"{container}-*.volume"))
    for path in own:
        if path.exists() and not path.is_symlink() and labels_in(text_of(path)).get(containers.NAME) == name:
            path.unlink()
            gone.append(f"unit {path.name}")
    for drop_in in _drop_ins(folder, name):
        drop_in.unlink()
    into = folder / f"{container}.container.d"
    if into.is_dir() and not into.is_symlink() and not any(into.iterdir()):
        into.rmdir()
    return tuple(gone)


def _is_unit(path: Path) -> bool:
    return path.suffix in KINDS and path.is_file()


def _drop_ins(folder: Path, name: str) -> list[Path]:
    into = folder / f"{containers.container_name(name)}.container.d"
    return sorted(into.glob("*.conf")) if into.is_dir() and not into.is_symlink() else []
