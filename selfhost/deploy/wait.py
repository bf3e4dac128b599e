"""The step `wait`: follow the engine's log through its phases until it answers, or say why it never will."""

import signal
import time
from dataclasses import dataclass, field

from selfhost.deploy.apply import lost
from selfhost.deploy.postmortem import died, ended_with_its_daemon, out_of_sight, silent
from selfhost.deploy.run import Run
from selfhost.engines.phases import PhaseFollower
from selfhost.runtimes.base import EngineState, Seen
from selfhost.shapes.event import Event
from selfhost.shapes.units import format_duration

STEP = "wait"
POLL_S = 0.2
"""With at most a second for /health, an engine's death is noticed well inside the two seconds promised."""
SILENCE_S = 900.0
"""No log line and no answer for this long is a hang (a JIT build of minutes prints nothing)."""
FAREWELL_S = 3.0
"""After a container was ended from outside, so long is looked whether its daemon is going too."""
PATIENCE_S = 90.0
"""A container engine that is updated or restarted is away for some seconds: systemd gives its stop 90 at most."""


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


@dataclass(slots=True)
class Sight:
    """Whether the one who runs the engine answers: a daemon that is restarted says nothing of what it ran."""

    _since: float | None = None
    _ended: float | None = None

    def is_lost(self, run: Run, seen: Seen, now: float, *, stage: str) -> bool:
        """Raises EnvironmentMissing when it stays away, or came back without the engine."""
        if seen.state is EngineState.UNKNOWN:
            self._since = now if self._since is None else self._since
            if now - self._since > PATIENCE_S:
                raise out_of_sight(run, seen, stage=stage)
            return True
        if self._since is not None and not seen.alive:
            raise ended_with_its_daemon(run, seen, stage=stage)
        self._since = None  # the engine went on without it
        if not seen.alive and _was_asked_to_end(run, seen):
            self._ended = now if self._ended is None else self._ended
            return now - self._ended < FAREWELL_S
        return False


def _was_asked_to_end(run: Run, seen: Seen) -> bool:
    """As a daemon does that stops: it ends its containers first, and then its own socket."""
    return run.runtime.info.containers and (seen.exit_code == 0 or seen.signal in (signal.SIGTERM, signal.SIGKILL))


def wait(run: Run) -> str:
    """Block until the engine answers `/health`; return the words for the finished step.

    Raises DeployFailed with the root cause as soon as the engine is gone or after a long silence, PortLost when
    somebody else answers, EnvironmentMissing when the container engine went away and took it along.
    """
    from selfhost.core.http import Client  # at use: 187 ms

    name = run.plan.name
    began = last_word = time.monotonic()
    tail = run.runtime.log(name)
    phases = Phases(began=began, follower=PhaseFollower(run.plan.build.engine))
    sight = Sight()
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
            if sight.is_lost(run, seen, now, stage=phases.follower.current):
                last_word = now
                lost_it = seen.state is EngineState.UNKNOWN
                words = "waiting for it" if lost_it else f"looking whether {run.runtime.info.name} is going too"
                _show(run, f"{seen.reason}; {words}", began)
                time.sleep(POLL_S)
                continue
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
