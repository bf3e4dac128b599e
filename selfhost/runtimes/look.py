"""One look at a deployment's engine: by its record, else by its tags, else by the lock that its keeper holds."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from selfhost.core import processes
from selfhost.core.lock import holder_of
from selfhost.core.processes import ProcessRef
from selfhost.runtimes import members, records
from selfhost.runtimes.base import EngineState, Seen
from selfhost.runtimes.records import EngineRecord, ExitRecord
from selfhost.runtimes.run_folder import RunFolder
from selfhost.shapes.finding import Finding

EXIT_RECORD_S = 1.5
"""A keeper writes down its engine's end within milliseconds; this long is waited for it."""
KEEPER_LOST = "its keeper was killed: nobody will write down how the engine ends, and its log grows without limit"


def look(folder: RunFolder, name: str) -> Seen:
    """Never raises for missing, damaged or stale files; a damaged one is set aside and reported in `findings`."""
    record, findings = records.read_engine(folder.engine)
    if record is None:
        return _without_record(folder, name, findings)
    seen = _of_record(record, findings)
    if record.boot_id != processes.boot_id():
        return replace(seen, reason="the machine was restarted, and the engine ended with it")
    kept = processes.runs(record.keeper_pid, record.keeper_start_ticks)
    if processes.runs(record.pid, record.start_ticks):
        return replace(seen, state=EngineState.RUNNING, reason="" if kept else f"the engine runs, but {KEEPER_LOST}")
    return _ended(folder, name, record, seen, kept=kept)


def _of_record(record: EngineRecord, findings: tuple[Finding, ...]) -> Seen:
    """Who it is; that it is gone, until something else is seen."""
    return Seen(
        state=EngineState.GONE,
        pid=record.pid,
        start_ticks=record.start_ticks,
        instance=record.instance,
        plan_digest=record.plan_digest,
        port=record.port,
        started_at=record.started_at,
        findings=findings,
    )


def _ended(folder: RunFolder, name: str, record: EngineRecord, seen: Seen, *, kept: bool) -> Seen:
    """The recorded engine is gone: how, as far as anybody saw."""
    ended, more = records.read_exit(folder.exit)
    deadline = time.monotonic() + EXIT_RECORD_S
    while kept and not _is_of(ended, record) and time.monotonic() < deadline:
        time.sleep(0.02)
        kept = processes.runs(record.keeper_pid, record.keeper_start_ticks)
        ended, more = records.read_exit(folder.exit)
    left = () if kept else members.of(folder.deployment, name, leader=record.leader)
    seen = replace(seen, leftovers=left, findings=seen.findings + more)
    if ended is None or ended.instance != record.instance:
        return replace(seen, reason="the engine and its keeper are gone, and nobody saw how they ended")
    return _exited(seen, ended)


def _is_of(ended: ExitRecord | None, record: EngineRecord) -> bool:
    return ended is not None and ended.instance == record.instance


def _exited(seen: Seen, ended: ExitRecord) -> Seen:
    return replace(
        seen,
        state=EngineState.EXITED,
        reason=_words(ended),
        instance=ended.instance,
        exit_code=ended.code,
        signal=ended.signal,
        out_of_memory=ended.out_of_memory,
        stopped=ended.stopped,
    )


def _without_record(folder: RunFolder, name: str, findings: tuple[Finding, ...]) -> Seen:
    """The keeper was killed before it recorded, or the record is damaged: the processes still know who they are."""
    found = members.of(folder.deployment, name)
    if found:
        return _recovered(found, findings, kept=bool(members.keepers(folder.deployment)))
    ended, more = records.read_exit(folder.exit)
    nothing = Seen(state=EngineState.GONE, reason="no process of the engine runs", findings=findings + more)
    if ended is not None:
        return _exited(nothing, ended)
    if folder.lock.exists() and _held(folder.lock):
        return replace(nothing, state=EngineState.STARTING, reason="the keeper is starting the engine")
    return nothing


def _recovered(found: tuple[ProcessRef, ...], findings: tuple[Finding, ...], *, kept: bool) -> Seen:
    """An engine without a record: the leader is the process that opened the session, or the oldest."""
    heads = [one for one in found if (seen := processes.stat(one.pid)) is not None and seen.session == one.pid]
    if not heads:
        words = "the engine is gone, and processes that it started are left"
        return Seen(state=EngineState.GONE, reason=words, leftovers=found, findings=findings)
    head = heads[0]
    port = members.value(head.pid, members.PORT)
    words = "the engine runs, found by its environment, for its record is missing"
    return Seen(
        state=EngineState.RUNNING,
        reason=words if kept else f"{words}, and {KEEPER_LOST}",
        pid=head.pid,
        start_ticks=head.start_ticks,
        instance=members.value(head.pid, members.INSTANCE),
        plan_digest=members.value(head.pid, members.PLAN),
        port=int(port) if port.isdigit() else None,
        started_at=_started_at(head),
        findings=findings,
    )


def _words(ended: ExitRecord) -> str:
    if ended.error:
        return f"the engine could not be started: {ended.error}"
    if ended.stopped:
        return "the engine was stopped"
    if ended.signal is None:
        return f"the engine ended with exit code {ended.code}"
    name = signal.Signals(ended.signal).name if ended.signal in set(signal.Signals) else f"signal {ended.signal}"
    if ended.out_of_memory:
        return f"the engine was killed ({name}) just when the kernel ended a process for lack of memory"
    return f"the engine was ended by {name}"


def _held(lock: Path) -> bool:
    try:
        return holder_of(lock) is not None
    except OSError:
        return False


def _started_at(one: ProcessRef) -> float:
    """Seconds since the epoch: boot time (/proc/stat, btime) plus the ticks that the process started after it."""
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) + one.start_ticks / os.sysconf("SC_CLK_TCK")
    return 0.0
