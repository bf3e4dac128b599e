"""`down`: end the engine, remove what this deployment made, and prove it."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.errors import Busy, DeployFailed
from selfhost.core.files import ensure_folder
from selfhost.core.lock import Held, hold, me
from selfhost.deploy.cluster_down import claims_after
from selfhost.deploy.journal import Journal
from selfhost.deploy.names import unknown
from selfhost.deploy.purge import agreed, remove_caches
from selfhost.deploy.runtime import of_state, runtimes_with
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.runtimes.base import STOP_GRACE_S, Runtime
from selfhost.shapes.event import Event
from selfhost.shapes.units import format_bytes, format_duration

STEP = "down"
_HELD = {"image": "image, shared by deployments", "volume": "compile caches, shared by deployments of this image"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was removed, what was proven, and what stays because it is shared or the user's own."""

    name: str
    runtime: str
    ended: tuple[int, ...]
    gone: tuple[str, ...]
    """Containers, networks and volumes, in words."""
    forced: bool
    port: int | None
    port_free: bool
    removed: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    """(what, path), with the size in the words."""
    seconds: float

    def to_json(self) -> dict[str, object]:
        return {
            "schema": "selfhost.receipt/1",
            "ok": True,
            "name": self.name,
            "runtime": self.runtime,
            "ended_processes": list(self.ended),
            "gone": list(self.gone),
            "forced": self.forced,
            "port": self.port,
            "port_free": self.port_free,
            "removed": list(self.removed),
            "kept": [{"what": what, "path": path} for what, path in self.kept],
            "seconds": round(self.seconds, 3),
        }

    def lines(self) -> list[str]:
        ended = f"{len(self.ended)} process{'es' if len(self.ended) != 1 else ''} ended" if self.ended else "none ran"
        rows = [f"{self.name} is down, in {format_duration(self.seconds)}", ""]
        if self.ended or not self.gone:
            rows.append(
                f"  processes  {ended}{' (killed after the grace period)' if self.forced else ''}; none is left"
            )
        rows.extend(f"  gone       {what}" for what in self.gone)
        if self.port is not None:
            rows.append(
                f"  port       127.0.0.1:{self.port} is {'free' if self.port_free else 'held by somebody else'}"
            )
        rows.extend(f"  removed    {path}" for path in self.removed)
        rows.extend(f"  kept       {path}  ({what})" for what, path in self.kept)
        return rows


def down(work: Workplace, name: str, *, wait_s: float, purge: bool = False) -> Receipt:
    """Take `name` down; with `purge` its compile caches go too, where no other deployment uses them.

    Raises InputError when there is no such deployment or the answer was no, Busy, DeployFailed when a process stays.
    """
    state = State(work.paths, name, say=work.say)
    found = runtimes_with(state, paths=work.paths, system=work.system)
    if not state.folder.exists() and not found:
        raise unknown(work.paths, name)
    with _locked(work, state, wait_s=wait_s):
        if purge:
            agreed(work, state, found)
        return _down(work, state, found or (of_state(state, paths=work.paths, system=work.system),), purge=purge)


@contextlib.contextmanager
def _locked(work: Workplace, state: State, *, wait_s: float) -> Iterator[None]:
    """Hold the deployment. A disk that is full must not keep an engine running: then there is no lock to write."""
    command = f"selfhost down {state.name}"

    def told(holder: Mapping[str, object]) -> None:
        text = f"waiting for `{holder.get('command')}` (pid {holder.get('pid')})"
        work.sink.on(Event(step=STEP, state="working", text=text))

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold(state.lock_file, me(command), wait_s=wait_s, on_wait=told))
        except Held as held:
            holder = held.holder
            raise Busy(
                f"`{holder.get('command', 'selfhost')}` is at work on {state.name} (pid {holder.get('pid', '?')})",
                why="It would start again what `down` ends.",
                fix=(f"wait for it:\n{command} --wait", f"or end it first:\nkill {holder.get('pid', 'PID')}"),
                id="RT009",
            ) from None
        except OSError as error:
            work.sink.on(Event(step=STEP, state="warning", text=f"without a lock: {error.strerror or error}"))
        yield


def _down(work: Workplace, state: State, runtimes: Sequence[Runtime], *, purge: bool) -> Receipt:
    began = time.monotonic()
    runtime = runtimes[0]
    seen = runtime.inspect(state.name)
    plan = state.plan()
    port = seen.port if seen.alive and seen.port is not None else plan.port if plan is not None else None
    work.sink.on(Event(step=STEP, state="working", text="ending the engine"))
    receipts = [
        one.remove(state.name)
        if one.info.containers or one.info.cluster
        else one.stop(state.name, grace_s=STOP_GRACE_S)
        for one in runtimes
    ]
    left = [process for one in runtimes for process in one.processes(state.name)]
    if left:
        raise DeployFailed(
            f"{len(left)} process{'es' if len(left) > 1 else ''} of {state.name} could not be ended",
            why="They survived SIGKILL, which happens in an uninterruptible wait (a driver or a network disk).",
            evidence="\n".join(str(process) for process in left[:5]),
            fix=("look at them:\nps -o pid,stat,wchan:32,cmd -p " + ",".join(str(p.pid) for p in left),),
            id="RT012",
        )
    purged, stays = remove_caches(work, state, runtimes) if purge else ((), {})
    claims = [claims_after(state, one, purge=purge) for one in runtimes if one.info.cluster]
    kept = [
        *(row for one in claims for row in one.kept),
        *_shared(Journal(state.journal_file), purged=purged, stays=stays),
        *_edited(work, state),
    ]
    _remove(state)
    return Receipt(
        name=state.name,
        runtime=runtime.info.name,
        ended=tuple(process.pid for receipt in receipts for process in receipt.ended),
        gone=(
            *(what for receipt in receipts for what in receipt.removed),
            *(f"volume {volume}" for volume in purged),
            *(what for one in claims for what in one.gone),
        ),
        forced=any(receipt.forced for receipt in receipts),
        port=port,
        port_free=port is None or runtime.port_holder(state.name, port) is None,
        removed=(str(state.folder),),
        kept=tuple(kept),
        seconds=time.monotonic() - began,
    )


def _remove(state: State) -> None:
    """Out of sight at once, then file by file: who looks meanwhile sees no half of a deployment."""
    for leftover in (*state.folder.parent.glob(f".{state.name}.removing-*"),):
        shutil.rmtree(leftover, ignore_errors=True)
    away = state.folder.with_name(f".{state.name}.removing-{os.getpid()}")
    state.folder.rename(away)
    shutil.rmtree(away)


def _shared(journal: Journal, *, purged: Sequence[str], stays: Mapping[str, str]) -> list[tuple[str, str]]:
    """Environments and weights stay, named with their size; `stays`: why a volume was not purged."""
    words = {"environment": "engine environment, shared by deployments", "weights": "weights"}
    entries, _ = journal.read()
    found = []
    for thing in journal.made(entries):
        if thing.get("kind") in ("image", "volume"):
            name = str(thing.get("path"))
            existed = ", was there before" if thing.get("existed") else ""
            why = f"; {stays[name]}" if name in stays else ""
            if name not in purged:
                found.append((f"{_HELD[str(thing['kind'])]}{existed}{why}", name))
            continue
        path = Path(str(thing.get("path") or "/nonexistent"))
        if path.is_dir():
            existed = ", was there before" if thing.get("existed") else ""
            found.append(
                (f"{words.get(str(thing.get('kind')), 'files')}, {format_bytes(_size(path))}{existed}", str(path))
            )
    return found


def _size(folder: Path) -> int:
    """Bytes below `folder`; what another command removes meanwhile counts nothing."""
    total = 0
    for where, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(where) / name).stat().st_size
            except OSError:
                continue
    return total


def _edited(work: Workplace, state: State) -> list[tuple[str, str]]:
    """Files that the user wrote move out of the way; they are not ours to remove."""
    overrides = state.bundle / "overrides"
    theirs = sorted(state.bundle.glob("*.edited-*")) + ([overrides] if overrides.is_dir() else [])
    if not theirs:
        return []
    place = ensure_folder(work.paths.state / "kept" / f"{state.name}-{time.strftime('%Y-%m-%dT%H-%M-%S')}")
    for file in theirs:
        file.rename(place / file.name)
    return [(f"{len(theirs)} file{'s' if len(theirs) > 1 else ''} that you edited", str(place))]
