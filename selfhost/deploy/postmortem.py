"""Why an engine is gone or hangs: the root cause where its log has one, and never an invented one."""

import signal

from selfhost.core.errors import Busy, DeployFailed, EnvironmentMissing
from selfhost.deploy.apply import lost
from selfhost.deploy.run import Run
from selfhost.deploy.wording import filled, look_at
from selfhost.engines.explain import explain
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.runtimes.base import EngineState, Seen
from selfhost.shapes.units import format_duration

TAIL_LINES = 5
PORT_TAKEN = "EF030"


def died(run: Run, seen: Seen, *, stage: str, after_s: float) -> DeployFailed | EnvironmentMissing | Busy:
    """The error for an engine that ended by itself or was ended by somebody else."""
    if seen.state is EngineState.UNKNOWN:
        return out_of_sight(run, seen, stage=stage)
    log = run.runtime.log(run.plan.name)
    text = log.last(None)
    engine = run.plan.build.engine
    code = seen.exit_code if seen.signal is None else 128 + seen.signal
    if seen.signal == signal.SIGKILL and not seen.out_of_memory:
        code = None  # anybody may send it; read as a lack of memory only where the kernel counted one
    found = explain(text, engine=engine, exit_code=code, stage=stage, requests=False)
    if found and found[0].id == PORT_TAKEN and run.plan.cluster is None:
        return lost(run, run.runtime.port_holder(run.plan.name, run.plan.port) or "another process")
    what = f"{shown(engine)} stopped after {format_duration(after_s)}"
    look = f"the whole log is kept:\n{look_at(log.where)}"
    again = "then run the same command again; it continues here:\n" + command_line("up", run.gathered.service)
    if found:
        first = found[0]
        return DeployFailed(
            f"{what}: {first.title}",
            why=first.why,
            evidence=first.evidence,
            fix=(*filled(first.fix, model=run.plan.model.ref, name=run.plan.name), look, again),
            id=first.id,
            place=first.place,
        )
    last = "\n".join([line for line in text.splitlines() if line.strip()][-TAIL_LINES:])
    return DeployFailed(
        f"{what}, at `{stage or 'the very start'}`: {seen.reason or 'nobody saw how'}",
        why="Its log holds no failure that selfhost knows; these are its last lines.",
        evidence=last,
        fix=(look, again),
        id="EF043",
    )


def out_of_sight(run: Run, seen: Seen, *, stage: str) -> EnvironmentMissing:
    """The error for an engine of which nobody can say whether it runs."""
    kind = run.runtime.info.name
    return EnvironmentMissing(
        f"{kind} went away while {shown(run.plan.build.engine)} was at `{stage or 'the very start'}`, and is not back",
        why=f"{seen.reason}, so nobody can see whether the engine still runs. Nothing was ended or removed.",
        fix=(
            "see what is in the way:\nselfhost doctor",
            "when it is back, the same command looks at what is there, and continues:\n"
            + command_line("up", run.gathered.service),
        ),
        id="RT121",
    )


def ended_with_its_daemon(run: Run, seen: Seen, *, stage: str) -> EnvironmentMissing:
    """The error for a start that a restart of the container engine cut short: no fault of the engine's."""
    kind = run.runtime.info.name
    return EnvironmentMissing(
        f"{kind} was restarted while {shown(run.plan.build.engine)} was at `{stage or 'the very start'}`, "
        "and the engine ended with it",
        why="A container that was never checked is not started again by itself. "
        f"How it stands now: {seen.reason or 'it does not run'}.",
        fix=(
            "start it again; images and weights are here:\n" + command_line("up", run.gathered.service),
            f"if {kind} restarts by itself again and again, see why:\njournalctl -u {kind} -n 50",
        ),
        id="RT120",
    )


def silent(run: Run, *, stage: str, after_s: float) -> DeployFailed:
    """The error for an engine that neither speaks nor answers."""
    return DeployFailed(
        f"{shown(run.plan.build.engine)} said nothing for {format_duration(after_s)} and does not answer, at `{stage}`",
        why="It still runs; a hang prints no line, so its cause can't be read from the log.",
        fix=(
            f"look at its log:\n{look_at(run.runtime.log(run.plan.name).where)}",
            f"end it:\nselfhost down {run.plan.name}",
        ),
        id="EF074",
    )
