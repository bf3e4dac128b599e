"""The step `apply`: one engine for this plan, whatever was or was not running before."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from selfhost.core.errors import Busy
from selfhost.core.files import write_atomic
from selfhost.core.lock import Held, hold, me
from selfhost.core.secret import ensure_key
from selfhost.deploy.bundle import text_of
from selfhost.deploy.memory import memory_now
from selfhost.deploy.run import Run
from selfhost.deploy.runtime import of_state
from selfhost.deploy.workload import digest_of_workload
from selfhost.engines.base import engine
from selfhost.plan.command_line import command_line
from selfhost.runtimes.base import STOP_GRACE_S, Launchable, PortTaken, Runtime, Seen

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


def wanted(run: Run) -> Seen | None:
    """The running engine when it is the one that this plan and the written files ask for."""
    seen = run.runtime.inspect(run.plan.name)
    if not seen.alive or seen.plan_digest != run.digest:
        return None
    return seen if run.workload is None or seen.workload_digest == digest_of_workload(run.workload) else None


def apply(run: Run) -> str:
    """Start the engine; a running one of another plan is ended first. Returns the words for the finished step.

    What can refuse comes before anything is ended. Raises PortLost, EnvironmentMissing.
    """
    if run.environment is None and run.image is None:
        raise ValueError("apply before fetch")
    name, runtime = run.plan.name, run.runtime
    former = of_state(run.state, paths=run.work.paths, system=run.work.system)
    seen = former.inspect(name)
    for finding in seen.findings:
        run.work.say(finding)
    for one in (former, runtime) if former.info.name != runtime.info.name else (runtime,):
        holder = one.port_holder(name, run.plan.port)
        if holder is None:
            break
    else:
        raise lost(run, holder)
    memory_now(run)
    keys(run)
    run.touched = True
    if former.info.name != runtime.info.name:
        _leave(former, name)
    elif seen.alive:
        former.stop(name, grace_s=STOP_GRACE_S)
    run.state.write_wanted(run.gathered.service, run.plan)
    if run.plan.container is not None:
        run.made(STEP, kind="volume", path=run.plan.container.cache_volume, existed=None)
    try:
        started = runtime.start(_launchable(run))
    except PortTaken:
        raise lost(run, runtime.port_holder(name, run.plan.port) or "somebody else") from None
    return _started(started) + (", in place of the former one" if seen.alive else "")


def _leave(former: Runtime, name: str) -> None:
    """Nothing stays of it with a runtime that no longer serves it: nobody would look there again."""
    if former.info.containers:
        former.remove(name)
    else:
        former.stop(name, grace_s=STOP_GRACE_S)


def keys(run: Run) -> None:
    """The key in its files: alone, as a header, and for a container as a variable."""
    key = ensure_key(run.state.key_file)
    variable = engine(run.plan.build.engine).KEY_VARIABLE
    line = f"{variable}={key}\n"
    if run.plan.container is not None and variable and text_of(run.state.env_file) != line:
        write_atomic(run.state.env_file, line)


def _started(seen: Seen) -> str:
    return f"container {seen.container}" if seen.container else f"engine process {seen.pid}"


def _launchable(run: Run) -> Launchable:
    """The engine as a process; or the container, which nobody starts again before a first start was checked."""
    variable = engine(run.plan.build.engine).KEY_VARIABLE
    common = Launchable(
        name=run.plan.name,
        key_variable=variable,
        key_file=str(run.state.key_file) if variable else "",
        plan_digest=run.digest,
        port=run.plan.port,
    )
    if run.workload is not None:
        return replace(
            common,
            workload=replace(run.workload, restart="no"),
            workload_digest=digest_of_workload(run.workload),
            stop_grace_s=run.workload.stop_grace_s or STOP_GRACE_S,
        )
    if run.environment is None:
        raise ValueError("apply before fetch")
    return replace(
        common,
        python=run.environment.python,
        module=run.plan.build.module,
        argv=run.plan.argv,
        env=run.plan.env,
    )
