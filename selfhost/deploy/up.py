"""`up`: run the steps under the deployment's lock; killed or interrupted anywhere, a rerun converges."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from selfhost.core.errors import Busy
from selfhost.core.files import sweep
from selfhost.core.lock import Held, hold
from selfhost.core.signals import Terminated
from selfhost.deploy import checking, launch
from selfhost.deploy.follow import wait
from selfhost.deploy.gather import Gathered, plan_for
from selfhost.deploy.journal import Journal
from selfhost.deploy.run import Run
from selfhost.deploy.state import Checks, State
from selfhost.deploy.steps import BEFORE_APPLY, Outcome, Step
from selfhost.deploy.workplace import Workplace
from selfhost.plan.decide import decide
from selfhost.plan.digest import digest_of
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.event import State as EventState
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.service import Service

WAIT_FOR_LOCK_S = 3600.0
INTERRUPT_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How `up` ended. `checks` is the kept or new smoke result."""

    run: Run
    checks: Checks
    fresh: bool
    """False when everything was there already and one request was answered."""

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode(self.checks.exit_code)


def up(work: Workplace, service: Service, *, command: str, wait_for_lock: bool) -> Result:
    """Take this machine to a running, checked endpoint for `service`."""
    began = time.monotonic()
    gathered = plan_for(work, service)
    state = State(work.paths, gathered.service.name, say=work.say)
    with _locked(work, state, command=command, wait_for_lock=wait_for_lock) as waited:
        if waited:  # the holder may have changed everything that was looked at
            gathered = plan_for(work, service)
        run = _begin(work, state, gathered)
        run.plumbing_s += time.monotonic() - began
        return _steps(run, command=command)


def _begin(work: Workplace, state: State, gathered: Gathered) -> Run:
    sweep(state.folder)
    journal = Journal(state.journal_file)
    _, damage = journal.read()
    for finding in damage:
        work.say(finding)
    return Run(
        work=work,
        state=state,
        journal=journal,
        gathered=gathered,
        plan=gathered.plan,
        digest=digest_of(gathered.plan),
    )


@contextmanager
def _locked(work: Workplace, state: State, *, command: str, wait_for_lock: bool) -> Iterator[list[bool]]:
    """Hold the deployment; yields a list that is non-empty when somebody else had to be waited for."""
    waited: list[bool] = []
    who = {
        "pid": os.getpid(),
        "command": command,
        "since": datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
    }

    def told(holder: Mapping[str, object]) -> None:
        waited.append(True)
        if wait_for_lock:
            from selfhost.shapes.event import Event

            text = f"waiting for `{holder.get('command', 'another command')}` (pid {holder.get('pid', '?')})"
            work.sink.on(Event(step="detect", state="working", text=text))

    try:
        with hold(state.lock_file, who, wait_s=WAIT_FOR_LOCK_S if wait_for_lock else 0.0, on_wait=told):
            yield waited
    except Held as held:
        holder = held.holder
        raise Busy(
            f"another `{holder.get('command', 'selfhost')}` is at work (pid {holder.get('pid', '?')}, "
            f"since {holder.get('since', '?')})",
            why="Two commands on one deployment would undo each other.",
            fix=(f"wait for it:\n{command} --wait", f"or look:\nselfhost status {state.name}"),
            id="RT009",
        ) from None


def _steps(run: Run, *, command: str) -> Result:
    runtime = ProcessRuntime(run.work.paths, run.work.system)
    for step in BEFORE_APPLY:
        _do(run, step)
    if launch.already(run, runtime):
        kept = checking.quick(run, instance=runtime.inspect(run.plan.name).instance)
        if kept is not None:
            for name in ("apply", "wait", "smoke"):
                run.tell(name, "unchanged", "")
            return Result(run=run, checks=kept, fresh=False)
    try:
        _start(run, runtime, command=command)
        _do(run, Step(name="smoke", act=lambda r: _smoke(r, runtime), bound="model"))
    except (KeyboardInterrupt, Terminated):
        _interrupted(run, runtime)
        raise
    checks = run.state.checks()
    if checks is None:
        raise ValueError("smoke left no result")
    return Result(run=run, checks=checks, fresh=True)


def _start(run: Run, runtime: ProcessRuntime, *, command: str) -> None:
    """Start and wait, in this deployment's turn on the device; a default port that was lost meanwhile moves."""
    with launch.device_turn(run, command=command):
        if launch.already(run, runtime):
            run.tell("apply", "unchanged", "")
            return _wait(run, runtime)
        for _ in range(launch.PORT_TRIES):
            try:
                _do(run, Step(name="apply", act=lambda r: Outcome(text=launch.apply(r, runtime))))
                return _wait(run, runtime)
            except launch.PortLost:
                runtime.stop(run.plan.name, grace_s=INTERRUPT_GRACE_S)
                if run.plan.port_explicit:
                    raise
                _move(run, runtime.free_port(run.plan.port + 1))
        raise launch.lost(run.plan.port, "other processes, again and again,")


def _wait(run: Run, runtime: ProcessRuntime) -> None:
    _do(run, Step(name="wait", act=lambda r: Outcome(text=wait(r, runtime)), bound="model"))
    run.ready = True


def _move(run: Run, port: int) -> None:
    """The same plan on another port, written and rendered again."""
    run.plan = decide(
        host=run.gathered.host, model=run.plan.model, service=run.gathered.service, port=port, build=run.plan.build
    )
    run.digest = digest_of(run.plan)
    run.state.write_plan(run.plan)
    run.tell("apply", "warning", f"the port was taken meanwhile; now 127.0.0.1:{port}")
    for step in BEFORE_APPLY:
        if step.name in ("render", "lint"):
            _do(run, step)


def _smoke(run: Run, runtime: ProcessRuntime) -> Outcome:
    instance = runtime.inspect(run.plan.name).instance
    return Outcome(text=checking.check(run, runtime, instance=instance))


def _do(run: Run, step: Step) -> None:
    """Run one step: events around it, its time on the right account, its journal line after the thing is made."""
    began = time.monotonic()
    run.tell(step.name, "working", "", since=began)
    try:
        outcome = step.act(run)
    except BaseException as error:
        interrupted = isinstance(error, (KeyboardInterrupt, Terminated))
        run.journal.write(step.name, "interrupted" if interrupted else "failed", digest=run.digest)
        words = "interrupted; a rerun continues here" if interrupted else str(error)
        run.tell(step.name, "warning" if interrupted else "failed", words, since=began)
        raise
    spent = time.monotonic() - began
    if step.bound == "plumbing":
        run.plumbing_s += spent
    elif step.bound == "model":
        run.model_s += spent
    if not outcome.unchanged:
        run.journal.write(step.name, "done", digest=run.digest, data={"text": outcome.text})
    state = "unchanged" if outcome.unchanged else _state_of(run, step)
    run.tell(step.name, state, outcome.text, since=began)


def _state_of(run: Run, step: Step) -> EventState:
    failed = step.name == "smoke" and run.report is not None and run.report.exit_code is ExitCode.NO
    return "failed" if failed else "done"


def _interrupted(run: Run, runtime: ProcessRuntime) -> None:
    """Leave a running deployment or nothing, and say which."""
    if run.ready:
        run.tell("smoke", "warning", f"interrupted; {run.plan.name} is running and was not checked to the end")
        return
    runtime.stop(run.plan.name, grace_s=INTERRUPT_GRACE_S)
    run.tell("wait", "warning", "interrupted; the engine was ended, nothing is running; a rerun continues")
