"""The step `wait`: follow the engine's log through its phases until it answers, or say why it never will."""

import time
from dataclasses import dataclass, field

from selfhost.deploy.apply import lost
from selfhost.deploy.postmortem import died, silent
from selfhost.deploy.run import Run
from selfhost.engines.phases import PhaseFollower
from selfhost.shapes.event import Event
from selfhost.shapes.units import format_duration

STEP = "wait"
POLL_S = 0.2
"""With at most a second for /health, an engine's death is noticed well inside the two seconds promised."""
SILENCE_S = 900.0
"""No log line and no answer for this long is a hang (a JIT build of minutes prints nothing)."""


@dataclass(slots=True)
class Phases:
    """How long each phase took, in order of appearance."""

    began: float
    follower: PhaseFollower
    spent: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0

    def feed(self, text: str, now: float) -> tuple[str, int | None, int | None]:
        """Take in log text; return the words, and done and total of a bar where the engine prints one."""
        before = self.follower.current
        words, done, total = self.follower.current, None, None
        for hit in self.follower.feed(text):
            words, done, total = hit.text or hit.phase, hit.done, hit.total
            if hit.phase != before:
                self._close(before, now)
                before = hit.phase
        return words, done, total

    def _close(self, phase: str, now: float) -> None:
        start = self._since or self.began
        self.spent[phase or "start"] = self.spent.get(phase or "start", 0.0) + now - start
        self._since = now

    def summary(self, now: float) -> str:
        self._close(self.follower.current, now)
        long = {phase: spent for phase, spent in self.spent.items() if spent >= 0.5}
        return " · ".join(f"{phase} {format_duration(spent)}" for phase, spent in long.items())


def wait(run: Run) -> str:
    """Block until the engine answers `/health`; return the words for the finished step.

    Raises DeployFailed with the root cause as soon as the engine is gone or after a long silence, PortLost when
    somebody else answers.
    """
    from selfhost.core.http import Client  # at use: 187 ms

    name = run.plan.name
    began = last_word = time.monotonic()
    tail = run.runtime.log(name)
    phases = Phases(began=began, follower=PhaseFollower(run.plan.build.engine))
    with Client(f"http://{run.plan.address}:{run.plan.port}", timeout_s=_health_s(run)) as client:
        next_try = began
        while True:
            now = time.monotonic()
            added = tail.more()
            if added:
                last_word = now
                words, done, total = phases.feed(added, now)
                _show(run, words, began, done=done, total=total)
            seen = run.runtime.inspect(name)
            if not seen.alive:
                phases.feed(tail.more(), now)
                phases.follower.finish()
                raise died(run, seen, stage=phases.follower.current, after_s=now - began)
            if now >= next_try:
                if client.get("/health").status == 200:
                    _refuse_foreign(run)
                    return phases.summary(now)
                next_try = now + (0.5 if phases.follower.current in ("server", "ready") else 1.0)
                _show(run, phases.follower.current, began)
            if now - last_word > SILENCE_S:
                raise silent(run, stage=phases.follower.current, after_s=now - last_word)
            time.sleep(POLL_S)


def _health_s(run: Run) -> float:
    """SGLang generates a token for /health and never answers within a second (http_server.py, health_generate)."""
    return 5.0 if run.plan.build.engine == "sglang" else 1.0


def _refuse_foreign(run: Run) -> None:
    """Who answers must be our engine: another server may have taken the port while ours was loading."""
    holder = run.runtime.port_holder(run.plan.name, run.plan.port)
    if holder is not None and holder.pid:
        raise lost(run, holder)


def _show(run: Run, words: str, began: float, *, done: int | None = None, total: int | None = None) -> None:
    elapsed = time.monotonic() - began
    run.work.sink.on(
        Event(step=STEP, state="working", text=words, done=done, total=total, unit="count", elapsed_s=elapsed)
    )
