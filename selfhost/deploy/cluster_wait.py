"""The step `wait` in a cluster: scheduling, pulling, fetching, loading, ready; with the reason at every stall."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

from selfhost.core.errors import DeployFailed
from selfhost.deploy.cluster_failed import given_up, hopeless, out_of_sight, silent_pod
from selfhost.deploy.cluster_stage import Stage, observed, overdue, stage_of, updated
from selfhost.deploy.cluster_steps import of
from selfhost.deploy.cluster_verdict import verdict
from selfhost.deploy.postmortem import died
from selfhost.deploy.run import Run
from selfhost.deploy.runtime import cluster_runtime
from selfhost.deploy.wait import SILENCE_S, STEP, Phases
from selfhost.engines.phases import PhaseFollower
from selfhost.runtimes.cluster.release import watched
from selfhost.runtimes.cluster.watch import Watch
from selfhost.shapes.event import Event
from selfhost.shapes.finding import Finding, Severity

POLL_S = 0.5
STALL_S = 10.0
"""A stall of less than this is how clusters work: an event comes before its cause is gone."""
AGAIN_S = 30.0
"""So often a lasting stall is looked into anew."""
SETTLE_S = 5.0
"""What looks hopeless must look so for this long: a Secret or a namespace's quota may come a moment later."""
PATIENCE_S = 120.0
"""A cluster that is not heard of for so long is lost; an API server that is updated is away for a minute."""
NO_NODE_S = 90.0
"""A pod that fits on no node, with nobody who would bring one, waits for ever."""
NEVER = frozenset({"KX001", "KX003", "KX004", "KX005", "KX006", "KX007", "KX017", "KX202", "KX208", "KX502"})
"""What doctor says of a pod without a node that no other pod's end mends."""


@dataclass(slots=True)
class _Course:
    """What one wait remembers."""

    began: float
    phases: Phases
    last_word: float
    stage: str = ""
    since: float = 0.0
    looked_at: float = 0.0
    hopeless_since: float | None = None
    found: tuple[Finding, ...] = ()
    told: set[str] = field(default_factory=set)
    spent: dict[str, float] = field(default_factory=dict)

    def enter(self, name: str, now: float) -> None:
        if name != self.stage:
            if self.stage:
                self.spent[self.stage] = self.spent.get(self.stage, 0.0) + now - self.since
            self.stage, self.since, self.looked_at, self.hopeless_since = name, now, 0.0, None


def wait(run: Run) -> str:
    """Block until a pod of this plan is ready and answers; return the words for the finished step.

    Raises DeployFailed as soon as nothing would help, EnvironmentMissing when the cluster is lost out of sight.
    """
    now = time.monotonic()
    course = _Course(began=now, last_word=now, phases=Phases(began=now, follower=PhaseFollower(run.plan.build.engine)))
    runtime = cluster_runtime(run.runtime)
    record = runtime.record(run.plan.name)
    tail = runtime.log(run.plan.name)
    with Watch(runtime.cluster(run.plan.name), watched(record)) as watch:
        while True:
            now = time.monotonic()
            _sight(run, watch.lost())
            objects = watch.objects()
            if watch.complete and observed(objects):
                stage = stage_of(objects)
                course.enter(stage.name, now)
                if stage.name in ("loading", "ready", "ended"):
                    _listen(run, course, tail.more(), now)
                if stage.name == "ready" and updated(objects) and _answers(run):
                    course.enter("", now)
                    return _summary(course, now)
                _judge(run, course, stage, now)
                _tell(run, course, stage, now)
                over = overdue(objects)
                if over:
                    raise given_up(run, stage, over, _found(run, course), after_s=now - course.began)
            time.sleep(POLL_S)


def _sight(run: Run, lost: tuple[float, str]) -> None:
    seconds, why = lost
    if seconds > PATIENCE_S:
        raise out_of_sight(run, why, after_s=seconds)
    if seconds > STALL_S:
        run.work.sink.on(Event(step=STEP, state="working", text=f"the cluster is not heard of: {why}; waiting for it"))


def _listen(run: Run, course: _Course, added: str, now: float) -> None:
    if added:
        course.last_word = now
        said, done, total = course.phases.feed(added, now)
        _show(run, course, said, now, done=done, total=total)


def _judge(run: Run, course: _Course, stage: Stage, now: float) -> None:
    """Stop where nothing would help. Raises DeployFailed."""
    if stage.name == "ended" and stage.pod is not None and stage.pod.exit_code is not None:
        seen = run.runtime.inspect(run.plan.name)
        _listen(run, course, run.runtime.log(run.plan.name).more(), now)
        course.phases.follower.finish()
        raise _died(run, course, replace(seen, exit_code=stage.pod.exit_code), now)
    course.hopeless_since = (course.hopeless_since or now) if stage.hopeless else None
    if course.hopeless_since is not None and now - course.hopeless_since >= SETTLE_S:
        raise hopeless(run, stage, _found(run, course), after_s=now - course.began)
    if stage.name == "scheduling" and now - course.since >= NO_NODE_S and _never(course.found):
        raise hopeless(run, stage, course.found, after_s=now - course.began)
    if stage.name == "loading" and now - max(course.last_word, course.since) > SILENCE_S:
        raise silent_pod(run, stage, after_s=SILENCE_S)


def _died(run: Run, course: _Course, seen: Any, now: float) -> Exception:
    """The engine's own diagnosis, and beside it what the cluster says of the end (a probe, the memory limit)."""
    error = died(run, seen, stage=course.phases.follower.current, after_s=now - course.since)
    if isinstance(error, DeployFailed) and error.id == "EF043":
        found = [one for one in _found(run, course) if one.severity is Severity.ERROR]
        if found:
            return hopeless(run, Stage(name="ended", text=seen.reason), tuple(found), after_s=now - course.began)
    return error


def _never(found: tuple[Finding, ...]) -> bool:
    errors = [one for one in found if one.severity is Severity.ERROR]
    return bool(errors) and errors[0].id in NEVER


def _tell(run: Run, course: _Course, stage: Stage, now: float) -> None:
    """Where it stands; of a stall the reason, each once as a line of its own."""
    if stage.stalled and now - course.since >= STALL_S and now - course.looked_at >= AGAIN_S:
        course.looked_at = now
        course.found = verdict(cluster_runtime(run.runtime).cluster(run.plan.name), of(run).release)
        for finding in course.found[:1]:
            if finding.title not in course.told:
                course.told.add(finding.title)
                run.tell(STEP, "warning", f"{finding.title} [{finding.id}]")
    if stage.name == "loading" and course.phases.follower.current:
        return
    _show(run, course, stage.text, now)


def _found(run: Run, course: _Course) -> tuple[Finding, ...]:
    course.found = verdict(cluster_runtime(run.runtime).cluster(run.plan.name), of(run).release) or course.found
    return course.found


def _answers(run: Run) -> bool:
    """Through the forward, as smoke will ask."""
    from selfhost.core.http import Client  # at use: 187 ms

    with Client(f"http://{run.plan.address}:{run.plan.port}", timeout_s=10.0) as client:
        return client.get("/health").status == 200


def _summary(course: _Course, now: float) -> str:
    from selfhost.shapes.units import format_duration

    long = {name: spent for name, spent in course.spent.items() if spent >= 1.0 and name not in ("ready", "applying")}
    words = " · ".join(f"{name} {format_duration(spent)}" for name, spent in long.items())
    return words or f"ready after {format_duration(now - course.began)}"


def _show(
    run: Run, course: _Course, words: str, now: float, *, done: int | None = None, total: int | None = None
) -> None:
    run.work.sink.on(
        Event(
            step=STEP, state="working", text=words, done=done, total=total, unit="count", elapsed_s=now - course.began
        )
    )
