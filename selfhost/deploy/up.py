"""`up`: run the steps under the deployment's lock; killed or interrupted anywhere, a rerun converges."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from selfhost.core.errors import Busy, EnvironmentMissing
from selfhost.core.files import sweep
from selfhost.core.lock import Held, hold, me
from selfhost.core.redact import mask
from selfhost.core.signals import Terminated
from selfhost.deploy import apply, cluster_apply, cluster_steps, cluster_wait, smoke
from selfhost.deploy.cluster_gather import gather_live
from selfhost.deploy.gather import Gathered, gather
from selfhost.deploy.journal import Journal
from selfhost.deploy.postmortem import died
from selfhost.deploy.render import write_checked
from selfhost.deploy.run import Run
from selfhost.deploy.runtime import of_plan
from selfhost.deploy.smoke import Running
from selfhost.deploy.state import Checks, State
from selfhost.deploy.steps import BEFORE_APPLY, Outcome, Step, replan
from selfhost.deploy.wait import wait
from selfhost.deploy.workplace import Workplace
from selfhost.plan.command_line import command_line
from selfhost.plan.digest import digest_of
from selfhost.plan.engine import KUBERNETES
from selfhost.runtimes.base import STOP_GRACE_S, Seen
from selfhost.runtimes.ports import free_port
from selfhost.shapes.event import Event
from selfhost.shapes.event import State as EventState
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.service import Service
from selfhost.stack.entry import Entry

WAIT_FOR_LOCK_S = 3600.0
INTERRUPT_GRACE_S = 5.0
SETTLED = ("kept", "not kept")
"""States of the journal: whether the runtime starts it again by itself."""


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


def up(
    work: Workplace, service: Service, *, wait_for_lock: bool, overwrite: bool = False, locked: Entry | None = None
) -> Result:
    """Take this machine to a running, checked endpoint for `service`; with `locked` only as that entry says."""
    began = time.monotonic()
    look = gather_live if service.runtime == KUBERNETES else gather
    gathered = look(work, service)
    state = State(work.paths, gathered.service.name, say=work.say)
    command = mask(command_line("up", gathered.service))
    with _locked(work, state, gathered.service, command=command, wait_for_lock=wait_for_lock) as waited:
        if waited:  # the holder may have changed everything that was looked at
            gathered = look(work, service)
        run = _begin(work, state, gathered)
        run.overwrite, run.locked = overwrite, locked
        run.plumbing_s += time.monotonic() - began
        return _steps(run, command=command)


def _begin(work: Workplace, state: State, gathered: Gathered) -> Run:
    for folder in (state.folder, state.folder / "run", state.bundle):
        sweep(folder)
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
        runtime=of_plan(gathered.plan, paths=work.paths, system=work.system),
    )


@contextmanager
def _locked(
    work: Workplace, state: State, service: Service, *, command: str, wait_for_lock: bool
) -> Iterator[list[bool]]:
    """Hold the deployment; yields a list that is non-empty when somebody else had to be waited for."""
    waited: list[bool] = []

    def told(holder: Mapping[str, object]) -> None:
        waited.append(True)
        if wait_for_lock:
            text = f"waiting for `{holder.get('command', 'another command')}` (pid {holder.get('pid', '?')})"
            work.sink.on(Event(step="detect", state="working", text=text))

    try:
        with hold(state.lock_file, me(command), wait_s=WAIT_FOR_LOCK_S if wait_for_lock else 0.0, on_wait=told):
            yield waited
    except Held as held:
        holder = held.holder
        raise Busy(
            f"another `{holder.get('command', 'selfhost')}` is at work (pid {holder.get('pid', '?')}, "
            f"since {holder.get('since', '?')})",
            why="Two commands on one deployment would undo each other.",
            fix=(
                "wait for it:\n" + command_line("up", service, "--wait"),
                f"or look:\nselfhost status {state.name}",
            ),
            id="RT009",
        ) from None


def _steps(run: Run, *, command: str) -> Result:
    cluster = run.plan.cluster is not None
    for step in cluster_steps.BEFORE_APPLY if cluster else BEFORE_APPLY:
        _do(run, step)
    apply.keys(run)
    seen = cluster_apply.wanted(run) if cluster else apply.wanted(run)
    kept = _kept(run, seen) if seen is not None else None
    if kept is not None:
        return kept
    try:
        if cluster:
            _start_in_cluster(run)
        else:
            _start(run, command=command)
        _do(run, Step(name="smoke", act=lambda r: Outcome(text=smoke.check(r)), bound="model"))
        result = _judged(run)
        if result.exit_code is ExitCode.OK:
            _keep(run)
    except (KeyboardInterrupt, Terminated):
        _interrupted(run)
        raise
    return result


def _kept(run: Run, seen: Seen) -> Result | None:
    """The result of the check before, while it holds for the engine that runs; a useless one is ended."""
    if run.plan.cluster is not None:
        cluster_apply.reach(run)
    if run.state.plan() is None or run.state.service() is None:  # lost meanwhile; the engine's own are these
        run.state.write_wanted(run.gathered.service, run.plan)
    found, kept = smoke.quick(run, seen)
    if kept is not None:
        for name in ("apply", "wait", "smoke"):
            run.tell(name, "unchanged", "")
        if kept.exit_code == ExitCode.OK and not _is_kept(run):
            _keep(run)
        return Result(run=run, checks=kept, fresh=False)
    if found is Running.USELESS:
        run.tell("apply", "warning", f"the running engine is started again: {found.value}")
        run.touched = True
        run.runtime.stop(run.plan.name, grace_s=STOP_GRACE_S)
    return None


def _keep(run: Run) -> None:
    """From a first checked start on, a container is started again by itself, also after a reboot.

    It serves and was checked by then: what refuses this, such as a full disk, is a warning, and the next `up` tries
    again.
    """
    try:
        policy = write_checked(run)
        kept = bool(policy) and run.runtime.keep(run.plan.name, policy)
    except (EnvironmentMissing, OSError) as error:
        run.tell("smoke", "warning", f"it does not start again by itself yet, the next `up` tries once more: {error}")
        return
    if not policy:
        return
    if kept:
        run.journal.write("smoke", "kept", digest=run.digest, data={"restart": policy})
    else:
        run.journal.write("smoke", "not kept", digest=run.digest)
        run.tell("smoke", "warning", f"{run.runtime.info.name} does not start it again by itself after a reboot")


def _is_kept(run: Run) -> bool:
    """Whether it was settled since the last start; only containers have something to keep."""
    if run.plan.container is None or run.plan.container.restart_checked == "no":
        return True
    entries, _ = run.journal.read()
    last = next((one for one in reversed(entries) if one.state in SETTLED or one.step == "apply"), None)
    return last is not None and last.state in SETTLED


def _start_in_cluster(run: Run) -> None:
    """The cluster's own scheduler serialises what shares a card; the port here is only that of the forward."""
    _do(run, Step(name="apply", act=lambda r: Outcome(text=cluster_apply.apply(r))))
    cluster_apply.reach(run)
    _do(run, Step(name="wait", act=lambda r: Outcome(text=cluster_wait.wait(r)), bound="model"))
    run.ready = True


def _start(run: Run, *, command: str) -> None:
    """Start and wait, in this deployment's turn on the device; a default port that was lost meanwhile moves."""
    with apply.device_turn(run, command=command):
        for _ in range(apply.PORT_TRIES):
            try:
                if apply.wanted(run) is None:
                    _do(run, Step(name="apply", act=lambda r: Outcome(text=apply.apply(r))))
                else:
                    run.tell("apply", "unchanged", "")
                _do(run, Step(name="wait", act=lambda r: Outcome(text=wait(r)), bound="model"))
            except apply.PortLost:
                if run.touched:
                    run.runtime.stop(run.plan.name, grace_s=INTERRUPT_GRACE_S)
                if run.plan.port_explicit:
                    raise
                _move(run, free_port(run.plan.port + 1, without=run.work.taken_ports))
            else:
                run.ready = True
                return
        raise apply.lost(run, "other processes, again and again,")


def _move(run: Run, port: int) -> None:
    """The same plan on another port, rendered again."""
    replan(run, port=port)
    run.tell("apply", "warning", f"the port was taken meanwhile; now 127.0.0.1:{port}")
    for step in BEFORE_APPLY:
        if step.name in ("render", "lint"):
            _do(run, step)


def _judged(run: Run) -> Result:
    """The result of a smoke that ended; an engine that did not survive it is a failed deployment."""
    seen = run.runtime.inspect(run.plan.name)
    if not seen.alive:
        raise died(run, seen, stage="serving", after_s=time.time() - (seen.started_at or time.time()))
    checks = run.state.checks()
    if checks is None:
        raise ValueError("smoke left no result")
    return Result(run=run, checks=checks, fresh=True)


def _do(run: Run, step: Step) -> None:
    """Run one step: events around it, its time on the right account, its journal line after the thing is made."""
    began = time.monotonic()
    run.tell(step.name, "working", "", since=began)
    try:
        outcome = step.act(run)
    except BaseException as error:
        _unfinished(run, step, error, began)
        raise
    spent = time.monotonic() - began
    if step.bound == "plumbing":
        run.plumbing_s += spent
    elif step.bound == "model":
        run.model_s += spent
    if not outcome.unchanged:
        run.journal.write(step.name, "done", digest=run.digest, data={"text": outcome.text})
    run.tell(step.name, "unchanged" if outcome.unchanged else _state_of(run, step), outcome.text, since=began)


def _unfinished(run: Run, step: Step, error: BaseException, began: float) -> None:
    moves = isinstance(error, apply.PortLost) and not run.plan.port_explicit
    interrupted = isinstance(error, (KeyboardInterrupt, Terminated))
    words = "interrupted" if interrupted else str(error)
    run.tell(step.name, "warning" if interrupted or moves else "failed", words, since=began)
    if not isinstance(error, OSError):  # a disk that refuses would refuse this line as well
        run.journal.write(step.name, words.split(":", 1)[0] if interrupted else "failed", digest=run.digest)


def _state_of(run: Run, step: Step) -> EventState:
    failed = step.name == "smoke" and run.report is not None and run.report.exit_code is ExitCode.NO
    return "failed" if failed else "done"


def _interrupted(run: Run) -> None:
    """Leave a running deployment or nothing, and say which. A second Ctrl-C must not cut this short: it is bounded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    name = run.plan.name
    if run.plan.cluster is not None:
        cluster_apply.interrupted(run)
    elif run.ready:
        run.tell("smoke", "warning", f"{name} is running and was not checked to the end")
    elif run.touched:
        run.runtime.stop(name, grace_s=INTERRUPT_GRACE_S)
        run.tell("wait", "warning", "the engine was ended, nothing is running; the same command continues")
    elif run.runtime.inspect(name).alive:
        run.tell("apply", "warning", f"nothing was changed; the engine of {name} that ran before goes on")
    else:
        run.tell("apply", "warning", "nothing is running; the same command continues")
