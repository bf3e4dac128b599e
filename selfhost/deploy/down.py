"""`down`: end the engine, remove what this deployment made, and prove it."""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from selfhost.core.errors import Busy, DeployFailed
from selfhost.core.lock import Held, hold
from selfhost.deploy.endpoint import unknown_deployment
from selfhost.deploy.journal import Journal
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.event import Event
from selfhost.shapes.units import format_bytes, format_duration

GRACE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was removed, what was proven, and what stays because others may use it."""

    name: str
    ended: tuple[int, ...]
    forced: bool
    port: int | None
    port_free: bool
    removed: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    """(what, path) of shared things, with their size in the words."""
    seconds: float

    def to_json(self) -> dict[str, object]:
        return {
            "schema": "selfhost.receipt/1",
            "ok": True,
            "name": self.name,
            "ended_processes": list(self.ended),
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
        rows.append(f"  processes  {ended}{' (killed after the grace period)' if self.forced else ''}; none is left")
        if self.port is not None:
            rows.append(
                f"  port       127.0.0.1:{self.port} is {'free' if self.port_free else 'held by somebody else'}"
            )
        rows.extend(f"  removed    {path}" for path in self.removed)
        rows.extend(f"  kept       {path}  {what}" for what, path in self.kept)
        return rows


def down(work: Workplace, name: str, *, command: str, wait_s: float) -> Receipt:
    """Take `name` down. Raises InputError when there is no such deployment, Busy, DeployFailed when a process stays."""
    state = State(work.paths, name, say=work.say)
    runtime = ProcessRuntime(work.paths, work.system)
    if not state.exists and not runtime.processes(name) and not state.folder.exists():
        raise unknown_deployment(work.paths, name)
    who = {"pid": os.getpid(), "command": command, "since": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        with hold(state.lock_file, who, wait_s=wait_s, on_wait=lambda holder: _told(work, holder)):
            return _down(work, state, runtime)
    except Held as held:
        holder = held.holder
        raise Busy(
            f"`{holder.get('command', 'selfhost')}` is at work on {name} (pid {holder.get('pid', '?')})",
            why="It would start again what `down` ends.",
            fix=(f"wait for it:\nselfhost down {name} --wait", f"or end it first:\nkill {holder.get('pid', 'PID')}"),
            id="RT009",
        ) from None


def _told(work: Workplace, holder: Mapping[str, object]) -> None:
    work.sink.on(
        Event(step="down", state="working", text=f"waiting for `{holder.get('command')}` (pid {holder.get('pid')})")
    )


def _down(work: Workplace, state: State, runtime: ProcessRuntime) -> Receipt:
    began = time.monotonic()
    plan = state.plan()
    journal = Journal(state.journal_file)
    kept = tuple(_kept(journal))
    work.sink.on(Event(step="down", state="working", text="ending the engine"))
    receipt = runtime.stop(state.name, grace_s=GRACE_S)
    left = runtime.processes(state.name)
    if left:
        raise DeployFailed(
            f"{len(left)} process{'es' if len(left) > 1 else ''} of {state.name} could not be ended",
            why="They survived SIGKILL, which happens in an uninterruptible wait (a driver or a network disk).",
            evidence="\n".join(str(process) for process in left[:5]),
            fix=("look at them:\nps -o pid,stat,wchan:32,cmd -p " + ",".join(str(p.pid) for p in left),),
            id="RT012",
        )
    journal.write("down", "done", data={"ended": [process.pid for process in receipt.ended]})
    shutil.rmtree(state.folder)
    port = plan.port if plan is not None else None
    return Receipt(
        name=state.name,
        ended=tuple(process.pid for process in receipt.ended),
        forced=receipt.forced,
        port=port,
        port_free=port is None or runtime.port_holder(port) is None,
        removed=(str(state.folder),),
        kept=kept,
        seconds=time.monotonic() - began,
    )


def _kept(journal: Journal) -> list[tuple[str, str]]:
    """Environments and weights are shared: they stay, named with their size."""
    words = {"environment": "engine environment, shared by deployments", "weights": "weights"}
    found = []
    for thing in journal.made():
        path = Path(str(thing.get("path", "")))
        if path.exists():
            existed = ", was there before" if thing.get("existed") else ""
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            found.append((f"({words.get(str(thing.get('kind')), 'file')}, {format_bytes(size)}{existed})", str(path)))
    return found
