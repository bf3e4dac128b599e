"""Managed environments of engines: one folder per engine, version, back end and Python, whole or not there."""

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path

from selfhost.core import processes
from selfhost.core.errors import Busy, EnvironmentMissing
from selfhost.core.files import ensure_folder, write_atomic
from selfhost.core.lock import Held, hold, me
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.fetch.install import Installation
from selfhost.fetch.pip_progress import size_of
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.plan import EngineBuild
from selfhost.shapes.units import MIB, format_bytes, format_duration

MARKER = ".selfhost-complete.json"
MARKER_SCHEMA = "selfhost.environment/1"
WAIT_S = 3600.0
"""Another command that installs the same engine is waited for this long."""
MARGIN_BYTES = 256 * MIB
"""Room beside the environment itself for the packages that are unpacked one after another."""


_DECIDING = (
    *("engine", "version", "distribution", "backend", "requirements", "remove", "fallback_index"),
    *("module", "import_name", "constraints", "python"),
)
"""Fields of a build by which two environments differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An engine's environment that was proven by importing it. `already`: nothing was installed now."""

    python: str
    folder: str
    already: bool
    versions: dict[str, str] = field(default_factory=dict)
    installed_bytes: int = 0
    seconds: float = 0.0
    """How long the installation took, then or now."""


def folder_of(build: EngineBuild, *, paths: Paths) -> Path:
    return paths.engines / f"{build.engine}-{build.version}-{build.backend}-py{_python()}"


def ready(build: EngineBuild, *, paths: Paths) -> Environment | None:
    """The environment when it is whole and for exactly this build; installs nothing, trusts nothing half-done."""
    folder = folder_of(build, paths=paths)
    try:
        raw = json.loads((folder / MARKER).read_bytes())
    except (OSError, ValueError):
        return None
    python = folder / "bin" / "python"
    wanted = (MARKER_SCHEMA, digest_of(build), platform.python_version_tuple()[:2])
    try:
        found = (raw["schema"], raw["build"], tuple(raw["python"].split(".")[:2]))
        versions = {str(name): str(version) for name, version in raw["versions"].items()}
        # Following the link to the Python it was made from: without that one nothing starts.
        if found != wanted or raw["folder"] != str(folder) or not os.access(python, os.X_OK):
            return None
        size, seconds = int(raw["bytes"]), float(raw["seconds"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Environment(
        python=str(python), folder=str(folder), already=True, versions=versions, installed_bytes=size, seconds=seconds
    )


def ensure(build: EngineBuild, *, paths: Paths, system: LocalSystem, sink: Sink, step: str) -> Environment:
    """Install the build unless it is there; two commands at once install it once.

    Killed at any moment, the next call starts clean; downloads are in pip's own cache. Raises EnvironmentMissing.
    """
    found = ready(build, paths=paths)
    if found is not None:
        return found
    _supported(build)
    folder = folder_of(build, paths=paths)
    title = f"{build.engine} {build.version}"

    def told(holder: object) -> None:
        pid = holder.get("pid", "?") if isinstance(holder, dict) else "?"
        sink.on(Event(step=step, state="working", text=f"waiting: another command installs {title} (pid {pid})"))

    try:
        _make(paths.engines)
        with hold(folder.with_name(f"{folder.name}.lock"), me(f"install {title}"), wait_s=WAIT_S, on_wait=told):
            return ready(build, paths=paths) or _install(build, folder, system=system, sink=sink, step=step)
    except Held as held:
        raise Busy(
            f"another command (pid {held.holder.get('pid', '?')}) has been installing {title} "
            f"for {format_duration(WAIT_S)}",
            why="Both would write into one folder.",
            fix=(
                f"see whether it still works:\nps -fp {held.holder.get('pid', 'PID')}",
                "then run the same command again",
            ),
            id="RT041",
        ) from None


def _install(build: EngineBuild, folder: Path, *, system: LocalSystem, sink: Sink, step: str) -> Environment:
    """With the lock held: remove what is there, install, prove, and mark it complete at the very end."""
    began = time.monotonic()
    installation = Installation(build, folder, system=system, sink=sink, step=step)
    installation.end_orphans()
    _not_in_use(folder)
    _remove(folder)
    _room(build, folder, system)
    try:
        installation.make(constraints=_constraints(build))
        versions = installation.prove()
    except BaseException:  # Ctrl-C too: gigabytes of no use to anybody are not left behind
        _remove(folder)
        raise
    finally:
        installation.sweep()
    size, seconds = size_of(folder), time.monotonic() - began
    marker = {
        "schema": MARKER_SCHEMA,
        "build": digest_of(build),
        "python": platform.python_version(),
        "folder": str(folder),
        "bytes": size,
        "seconds": round(seconds, 1),
        "versions": versions,
    }
    write_atomic(folder / MARKER, json.dumps(marker, indent=1, sort_keys=True) + "\n")
    words = f"{build.engine} {build.version}: {format_bytes(size)} installed in {format_duration(seconds)}"
    sink.on(Event(step=step, state="working", text=words))
    return Environment(
        python=str(folder / "bin" / "python"),
        folder=str(folder),
        already=False,
        versions=versions,
        installed_bytes=size,
        seconds=seconds,
    )


def digest_of(build: EngineBuild) -> str:
    """Everything that decides what is installed; where a row's facts come from does not."""
    row = asdict(build)
    text = json.dumps({key: row[key] for key in _DECIDING}, sort_keys=True) + _constraints(build)
    return hashlib.sha256(text.encode()).hexdigest()


def _constraints(build: EngineBuild) -> str:
    if not build.constraints:
        return ""
    return files("selfhost.engines").joinpath("locks", build.constraints).read_text(encoding="utf-8")


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _supported(build: EngineBuild) -> None:
    from packaging.specifiers import SpecifierSet  # at use: only when something is installed

    if build.python and platform.python_version() not in SpecifierSet(build.python, prereleases=True):
        raise EnvironmentMissing(
            f"{build.distribution} {build.version} supports Python {build.python}; this is {platform.python_version()}",
            why="The engine's environment is made with the Python that selfhost runs with.",
            fix=("install selfhost with a Python that it supports, then run the same command again",),
            evidence=sys.executable,
            id="RT036",
        )


def _make(engines: Path) -> None:
    try:
        ensure_folder(engines)
    except OSError as error:
        raise EnvironmentMissing(
            f"{engines} cannot be made: {error.strerror}",
            why="Engines are installed there.",
            fix=(
                f"see whom it belongs to:\nls -ld {engines.parent}",
                "or put engines elsewhere:\nexport XDG_CACHE_HOME=/path/that/is/yours",
            ),
            id="RT042",
        ) from None


def _room(build: EngineBuild, folder: Path, system: LocalSystem) -> None:
    need = build.installed_bytes * 11 // 10 + min(MARGIN_BYTES, build.installed_bytes // 4)
    _, free = system.disk(str(folder.parent))
    if free < need:
        raise EnvironmentMissing(
            f"the disk of {folder.parent} has {format_bytes(free)} free; {build.engine} {build.version} "
            f"needs {format_bytes(need)}",
            why=f"{format_bytes(build.installed_bytes)} installed, and room to unpack. Nothing was changed.",
            fix=(
                "free some room there, then run the same command again",
                "or put engines on another disk:\nexport XDG_CACHE_HOME=/path/on/a/larger/disk",
            ),
            id="RT011",
        )


def _not_in_use(folder: Path) -> None:
    """An engine that runs from the folder would lose the modules that it has not loaded yet."""
    if not folder.exists():
        return
    inside = f"{folder}{os.sep}"
    users = [processes.ref(one) for one in processes.table().values() if processes.uses(one.pid, inside)]
    if users:
        raise Busy(
            f"{folder} must be made anew, and {len(users)} process{'es' if len(users) > 1 else ''} run from it",
            why="It is incomplete or was made for another build; removing it would break what runs.",
            fix=("end the deployment that uses it, then run the same command again:\nselfhost status",),
            evidence="\n".join(str(one)[:200] for one in users[:5]),
            id="RT040",
        )


def _remove(folder: Path) -> None:
    """The marker first: a removal that is broken off must not leave a folder that looks complete."""
    (folder / MARKER).unlink(missing_ok=True)
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
