"""One look at a deployment's engine: by its record, else by its tags, else by the lock that its keeper holds."""

import os
import signal
import time
from pathlib import Path

from selfhost.core import processes
from selfhost.core.lock import holder_of
from selfhost.core.processes import ProcessRef
from selfhost.runtimes import family, records
from selfhost.runtimes.base import Seen, State
from selfhost.runtimes.records import EngineRecord, ExitRecord, RunFolder
from selfhost.shapes.finding import Finding

EXIT_RECORD_S = 1.5
"""A keeper writes down its engine's end within milliseconds; this long is waited for it."""


def look(folder: RunFolder, name: str) -> Seen:
    """Never raises for missing, damaged or stale files; a damaged one is set aside and reported in `findings`."""
    record, findings = records.read_engine(folder.engine)
    if record is None:
        return _without_record(folder, name, findings)
    if record.boot_id != processes.boot_id():
        return _seen(record, State.GONE, findings, reason="the machine was restarted since")
    kept = processes.runs(record.keeper_pid, record.keeper_start_ticks)
    if processes.runs(record.pid, record.start_ticks):
        words = "" if kept else "its keeper is gone: how it ends will not be written down, and its log grows unbounded"
        return _seen(record, State.RUNNING, findings, reason=words, keeper_lost=not kept)
    return _ended(folder, name, record, findings, kept=kept)


def _ended(folder: RunFolder, name: str, record: EngineRecord, findings: tuple[Finding, ...], *, kept: bool) -> Seen:
    """The recorded engine is gone: how, as far as anybody saw."""
    ended, more = records.read_exit(folder.exit)
    deadline = time.monotonic() + EXIT_RECORD_S
    while kept and not _of(ended, record) and time.monotonic() < deadline:
        time.sleep(0.02)
        kept = processes.runs(record.keeper_pid, record.keeper_start_ticks)
        ended, more = records.read_exit(folder.exit)
    left = () if kept else family.members(folder.deployment, name, leader=record.leader)
    if ended is None or ended.instance != record.instance:
        words = "the engine and its keeper are gone; nobody saw how they ended"
        return _seen(record, State.GONE, findings + more, reason=words, leftovers=left)
    return Seen(
        state=State.EXITED,
        reason=_words(ended),
        pid=record.pid,
        start_ticks=record.start_ticks,
        instance=record.instance,
        plan_digest=record.plan_digest,
        port=record.port,
        started_at=record.started_at,
        exit_code=ended.code,
        signal=ended.signal,
        out_of_memory=ended.out_of_memory,
        stopped=ended.stopped,
        leftovers=left,
        findings=findings + more,
    )


def _without_record(folder: RunFolder, name: str, findings: tuple[Finding, ...]) -> Seen:
    """The keeper was killed before it recorded, or the record is damaged: the processes still know who they are."""
    found = family.members(folder.deployment, name)
    if found:
        return _recovered(found, findings, keeper_lost=not family.keepers(folder.deployment))
    ended, more = records.read_exit(folder.exit)
    if ended is not None:
        return Seen(
            state=State.EXITED,
            reason=_words(ended),
            instance=ended.instance,
            exit_code=ended.code,
            signal=ended.signal,
            out_of_memory=ended.out_of_memory,
            stopped=ended.stopped,
            findings=findings + more,
        )
    if folder.lock.exists() and _held(folder.lock):
        return Seen(state=State.STARTING, reason="its keeper is starting it", findings=findings + more)
    return Seen(state=State.GONE, reason="nothing of it runs", findings=findings + more)


def _recovered(found: tuple[ProcessRef, ...], findings: tuple[Finding, ...], *, keeper_lost: bool) -> Seen:
    """An engine without a record: the leader is the process that opened the session, or the oldest."""
    heads = [one for one in found if (seen := processes.stat(one.pid)) is not None and seen.session == one.pid]
    if not heads:
        words = "the engine is gone, processes that it started are left"
        return Seen(state=State.GONE, reason=words, leftovers=found, findings=findings)
    head = heads[0]
    port = family.value(head.pid, family.PORT)
    return Seen(
        state=State.RUNNING,
        reason="found by its environment; its record is missing",
        pid=head.pid,
        start_ticks=head.start_ticks,
        instance=family.value(head.pid, family.INSTANCE),
        plan_digest=family.value(head.pid, family.PLAN),
        port=int(port) if port.isdigit() else None,
        started_at=_started_at(head),
        keeper_lost=keeper_lost,
        findings=findings,
    )


def _of(ended: ExitRecord | None, record: EngineRecord) -> bool:
    return ended is not None and ended.instance == record.instance


def _seen(
    record: EngineRecord,
    state: State,
    findings: tuple[Finding, ...],
    *,
    reason: str = "",
    keeper_lost: bool = False,
    leftovers: tuple[ProcessRef, ...] = (),
) -> Seen:
    return Seen(
        state=state,
        reason=reason,
        pid=record.pid,
        start_ticks=record.start_ticks,
        instance=record.instance,
        plan_digest=record.plan_digest,
        port=record.port,
        started_at=record.started_at,
        keeper_lost=keeper_lost,
        leftovers=leftovers,
        findings=findings,
    )


def _words(ended: ExitRecord) -> str:
    if ended.error:
        return f"it could not be started: {ended.error}"
    if ended.stopped:
        return "it was stopped"
    if ended.signal is None:
        return f"it ended with exit code {ended.code}"
    name = signal.Signals(ended.signal).name if ended.signal in set(signal.Signals) else f"signal {ended.signal}"
    if ended.out_of_memory:
        return f"it was killed ({name}) just when the kernel ended a process for lack of memory"
    return f"it was ended by {name}"


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
