"""The step `apply`: one engine for this plan, whatever was or was not running before."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from selfhost.core.errors import Busy
from selfhost.core.lock import Held, hold, me
from selfhost.core.secret import ensure_key
from selfhost.deploy.memory import memory_now
from selfhost.deploy.run import Run
from selfhost.plan.command_line import command_line
from selfhost.runtimes.base import STOP_GRACE_S, Launchable, Seen
from selfhost.runtimes.process import ProcessRuntime

STEP = "apply"
PORT_TRIES = 5
DEVICE_WAIT_S = 1800.0
"""A start on a shared device waits this long for the one before it to allocate its KV cache."""


class PortLost(Busy):
    """Somebody took the port between choosing it and the engine's bind. Only a port that was asked for stays."""


def lost(run: Run, holder: object) -> PortLost:
    return PortLost(
        f"127.0.0.1:{run.plan.port} was taken by {holder} meanwhile",
        why="The port was free when it was chosen.",
        fix=(
            "without --port the next free one is taken:\n"
            + command_line("up", run.gathered.service, change={"port": None}),
        ),
        id="RT005",
    )


@contextmanager
def device_turn(run: Run, *, command: str) -> Iterator[None]:
    """Serialise starts on one device: free memory is only true while nobody else is allocating."""
    # In one order for everybody: two starts that share some of their cards must not wait for each other.
    paths = [run.work.paths.devices / f"{one.replace('/', '-')}.lock" for one in sorted(run.plan.device.split(","))]

    def told(holder: Mapping[str, object]) -> None:
        name = holder.get("name", "another deployment")
        run.tell(STEP, "working", f"waiting: `{name}` is starting on {run.plan.device_name}")

    try:
        with ExitStack() as turns:
            for path in paths:
                turns.enter_context(hold(path, me(command, name=run.plan.name), wait_s=DEVICE_WAIT_S, on_wait=told))
            yield
    except Held as held:
        raise Busy(
            f"`{held.holder.get('name', 'another deployment')}` is still starting on {run.plan.device_name}",
            why="Two engines that start at once on one device both count the same free memory.",
            fix=("look at it:\nselfhost status",),
            id="RT010",
        ) from None


def wanted(run: Run, runtime: ProcessRuntime) -> Seen | None:
    """The running engine when it is the one that this plan asks for."""
    seen = runtime.inspect(run.plan.name)
    return seen if seen.alive and seen.plan_digest == run.digest else None


def apply(run: Run, runtime: ProcessRuntime) -> str:
    """Start the engine; a running one of another plan is ended first. Returns the words for the finished step.

    What can refuse comes before anything is ended. Raises PortLost, EnvironmentMissing.
    """
    if run.environment is None:
        raise ValueError("apply before fetch")
    seen = runtime.inspect(run.plan.name)
    for finding in seen.findings:
        run.work.say(finding)
    own = {process.pid for process in runtime.processes(run.plan.name)}
    holder = runtime.port_holder(run.plan.port)
    if holder is not None and holder.pid not in own:
        raise lost(run, holder)
    memory_now(run, runtime=runtime)
    ensure_key(run.state.key_file)
    run.touched = True
    if seen.alive:
        runtime.stop(run.plan.name, grace_s=STOP_GRACE_S)
    run.state.write_wanted(run.gathered.service, run.plan)
    started = runtime.start(
        Launchable(
            name=run.plan.name,
            python=run.environment.python,
            module=run.plan.build.module,
            argv=run.plan.argv,
            env=run.plan.env,
            key_variable=_key_variable(run),
            key_file=str(run.state.key_file),
            plan_digest=run.digest,
            port=run.plan.port,
        )
    )
    return f"engine process {started.pid}" + (", in place of the former one" if seen.alive else "")


def _key_variable(run: Run) -> str:
    from selfhost.engines.base import engine

    return engine(run.plan.build.engine).KEY_VARIABLE
