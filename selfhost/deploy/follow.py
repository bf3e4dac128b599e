"""The step `wait`: follow the engine's log through its phases until it answers, or say why it never will."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from selfhost.core.errors import DeployFailed
from selfhost.deploy.launch import lost
from selfhost.deploy.run import Run
from selfhost.deploy.wording import filled
from selfhost.engines.explain import explain
from selfhost.engines.phases import PhaseFollower
from selfhost.plan.describe import command_line
from selfhost.runtimes.base import Seen
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.units import format_duration

STEP = "wait"
POLL_S = 0.2
"""An engine's death is noticed within this, well inside the two seconds promised."""
SILENCE_S = 900.0
"""No log line and no answer for this long is a hang (a JIT build of minutes prints nothing)."""
TAIL_LINES = 5
PORT_TAKEN = "EF030"


@dataclass(slots=True)
class Tail:
    """Reads what was added to a log since the last look; starts over when the file was truncated or replaced."""

    path: Path
    _offset: int = 0
    _inode: int = 0

    def more(self) -> str:
        try:
            with self.path.open("rb") as stream:
                stat = self.path.stat()
                if stat.st_ino != self._inode or stat.st_size < self._offset:
                    self._offset, self._inode = 0, stat.st_ino
                stream.seek(self._offset)
                added = stream.read()
        except FileNotFoundError:
            return ""
        self._offset += len(added)
        return added.decode("utf-8", "replace")


@dataclass(slots=True)
class Phases:
    """How long each phase took, in order of appearance."""

    began: float
    follower: PhaseFollower
    spent: dict[str, float] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    _since: float = 0.0

    def feed(self, text: str, now: float) -> tuple[str, int | None, int | None]:
        """Take in log text; return the words, and done and total of a bar where the engine prints one."""
        before = self.follower.current
        words, done, total = self.follower.current, None, None
        for hit in self.follower.feed(text):
            self.facts.update(hit.captures)
            words, done, total = hit.text or hit.phase, hit.done, hit.total
            if hit.phase != before:
                self._close(before, now)
                before = hit.phase
        return words, done, total

    def _close(self, phase: str, now: float) -> None:
        start = self._since or self.began
        if phase:
            self.spent[phase] = self.spent.get(phase, 0.0) + now - start
        self._since = now

    def summary(self, now: float) -> str:
        self._close(self.follower.current, now)
        long = {phase: spent for phase, spent in self.spent.items() if spent >= 0.5}
        return " · ".join(f"{phase} {format_duration(spent)}" for phase, spent in long.items())


def wait(run: Run, runtime: ProcessRuntime) -> str:
    """Block until the engine answers `/health`; return the words for the finished step.

    Raises DeployFailed with the root cause as soon as the engine is gone, or after a long silence.
    """
    from selfhost.core.http import Client  # at use: 187 ms

    name = run.plan.name
    began = last_word = time.monotonic()
    tail = Tail(runtime.logs(name))
    phases = Phases(began=began, follower=PhaseFollower(run.plan.build.engine))
    with Client(f"http://{run.plan.address}:{run.plan.port}", timeout_s=2.0) as client:
        next_try = began
        while True:
            now = time.monotonic()
            added = tail.more()
            if added:
                last_word = now
                words, done, total = phases.feed(added, now)
                _show(run, words, began, done=done, total=total)
            seen = runtime.inspect(name)
            if not seen.alive:
                phases.feed(tail.more(), now)
                phases.follower.finish()
                raise died(run, runtime, seen, stage=phases.follower.current, after_s=now - began)
            if now >= next_try:
                if client.get("/health").status == 200:
                    _refuse_foreign(run, runtime)
                    run.notes.extend(f"{key}={value}" for key, value in phases.facts.items())
                    return phases.summary(now)
                next_try = now + (0.5 if phases.follower.current in ("server", "ready") else 1.0)
                _show(run, phases.follower.current, began)
            if now - last_word > SILENCE_S:
                raise silent(run, runtime, stage=phases.follower.current, after_s=now - last_word)
            time.sleep(POLL_S)


def _refuse_foreign(run: Run, runtime: ProcessRuntime) -> None:
    """Who answers must be our engine: another server may have taken the port while ours was loading."""
    holder = runtime.port_holder(run.plan.port)
    if holder is not None and holder.pid and holder.pid not in {one.pid for one in runtime.processes(run.plan.name)}:
        raise lost(run.plan.port, holder)


def _show(run: Run, words: str, began: float, *, done: int | None = None, total: int | None = None) -> None:
    from selfhost.shapes.event import Event

    run.work.sink.on(
        Event(
            step=STEP,
            state="working",
            text=words,
            done=done,
            total=total,
            unit="count",
            elapsed_s=time.monotonic() - began,
        )
    )


def died(run: Run, runtime: ProcessRuntime, seen: Seen, *, stage: str, after_s: float) -> DeployFailed:
    """The error for an engine that ended: its root cause where the log has one, and never an invented one."""
    log = runtime.logs(run.plan.name)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    engine = run.plan.build.engine
    code = seen.exit_code if seen.signal is None else 128 + seen.signal
    what = f"{engine} stopped after {format_duration(after_s)}{_how(seen)}"
    findings = explain(text, engine=engine, exit_code=code, stage=stage)
    if findings and findings[0].id == PORT_TAKEN:
        raise lost(run.plan.port, runtime.port_holder(run.plan.port) or "another process")
    look = f"the whole log is kept:\nless {log}"
    again = f"then run the same command again; it continues here:\n{command_line('up', run.gathered.service)}"
    if findings:
        first = findings[0]
        fix = filled(first.fix, model=run.plan.model.ref, name=run.plan.name)
        return DeployFailed(
            f"{what}: {first.title}",
            why=first.why,
            evidence=first.evidence,
            fix=(*fix, look, again),
            id=first.id,
            place=first.place,
        )
    last = "\n".join([line for line in text.splitlines() if line.strip()][-TAIL_LINES:])
    return DeployFailed(
        f"{what}, at `{stage or 'the very start'}`",
        why=f"{_seen_words(seen)} Its log holds no failure that selfhost knows; these are its last lines.".strip(),
        evidence=last,
        fix=(look, again),
        id="EF043",
    )


def _how(seen: Seen) -> str:
    if seen.signal is not None:
        return f", ended by signal {seen.signal}"
    return f" with exit code {seen.exit_code}" if seen.exit_code is not None else ""


def _seen_words(seen: Seen) -> str:
    if seen.out_of_memory:
        return "The kernel was out of memory just then and ended a process."
    if seen.signal is not None:
        return "Another process or the kernel ended it; the engine itself printed no reason."
    return ""


def silent(run: Run, runtime: ProcessRuntime, *, stage: str, after_s: float) -> DeployFailed:
    """The error for an engine that neither speaks nor answers."""
    log = runtime.logs(run.plan.name)
    return DeployFailed(
        f"{run.plan.build.engine} said nothing for {format_duration(after_s)} and does not answer, at `{stage}`",
        why="It still runs; a hang prints no line, so its cause can't be read from the log.",
        fix=(f"look at its log:\nless {log}", f"end it:\nselfhost down {run.plan.name}"),
        id="EF074",
    )
