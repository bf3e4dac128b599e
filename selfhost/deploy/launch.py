"""The step `apply`: one engine for this plan, whatever was or was not running before."""

from collections.abc import Iterator
from contextlib import contextmanager

from selfhost.core.errors import Busy, EnvironmentMissing
from selfhost.core.lock import Held, hold
from selfhost.core.secret import ensure_key
from selfhost.deploy.run import Run
from selfhost.hosts.detect import detect
from selfhost.runtimes.base import Launchable
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.host import Known
from selfhost.shapes.units import format_bytes

STEP = "apply"
PORT_TRIES = 5
DEVICE_WAIT_S = 1800.0
"""A start on a shared device waits this long for the one before it to allocate its KV cache."""
STOP_GRACE_S = 20.0


class PortLost(Busy):
    """Somebody took the port between choosing it and the engine's bind. Only a port that was asked for stays."""


def lost(port: int, holder: object) -> PortLost:
    return PortLost(
        f"127.0.0.1:{port} was taken by {holder} while the engine started",
        why="The port was free when it was chosen.",
        fix=("run the same command again; without --port the next free one is taken",),
        id="RT005",
    )


@contextmanager
def device_turn(run: Run, *, command: str) -> Iterator[None]:
    """Serialise starts on one device: free memory is only true while nobody else is allocating."""
    path = run.work.paths.devices / f"{run.plan.device.replace('/', '-')}.lock"
    who = {"command": command, "name": run.plan.name}

    def told(holder: object) -> None:
        name = holder.get("name", "another deployment") if isinstance(holder, dict) else "another deployment"
        run.tell(STEP, "working", f"waiting: `{name}` is starting on {run.plan.device_name}")

    try:
        with hold(path, who, wait_s=DEVICE_WAIT_S, on_wait=told):
            yield
    except Held as held:
        raise Busy(
            f"`{held.holder.get('name', 'another deployment')}` is still starting on {run.plan.device_name}",
            why="Two engines that start at once on one device both count the same free memory.",
            fix=("look at it:\nselfhost status",),
            id="RT010",
        ) from None


def already(run: Run, runtime: ProcessRuntime) -> bool:
    """True when the engine that this plan asks for is running."""
    seen = runtime.inspect(run.plan.name)
    return seen.alive and seen.plan_digest == run.digest


def apply(run: Run, runtime: ProcessRuntime) -> str:
    """Start the engine; a running one of another plan is ended first. Returns the words for the finished step."""
    seen = runtime.inspect(run.plan.name)
    for finding in seen.findings:
        run.work.say(finding)
    replaced = ""
    if seen.alive:
        runtime.stop(run.plan.name, grace_s=STOP_GRACE_S)
        replaced = ", in place of the former one (its plan differed)"
    holder = runtime.port_holder(run.plan.port)
    if holder is not None:
        raise lost(run.plan.port, holder)
    _memory_still_free(run)
    ensure_key(run.state.key_file)
    if run.environment is None:
        raise ValueError("apply before fetch")
    run.started_engine = True
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
    run.journal.write(STEP, "done", digest=run.digest, data={"pid": started.pid, "instance": started.instance})
    return f"engine process {started.pid}{replaced}"


def _key_variable(run: Run) -> str:
    from selfhost.engines.base import engine

    return engine(run.plan.build.engine).KEY_VARIABLE


def _memory_still_free(run: Run) -> None:
    """Read free memory again, now that nobody else can be starting on this device."""
    if run.plan.device != "cpu":
        return
    memory = detect(run.work.system).memory.available
    need = run.plan.memory.weights + run.plan.memory.overhead + run.plan.memory.kv_cache
    if isinstance(memory, Known) and memory.value < need:
        raise EnvironmentMissing(
            f"{run.plan.name} needs {format_bytes(need)} of memory; {format_bytes(memory.value)} are free now",
            why=f"Read from {memory.how} just before the start; other processes took the rest since.",
            fix=(
                "end what is not needed, then run the same command again",
                f"or plan smaller:\nselfhost up {run.plan.model.ref} --context {max(256, run.plan.context // 4)}",
            ),
            id="PL010",
        )
