"""Whether the memory that a plan needs is free at this moment."""

from selfhost.core.errors import EnvironmentMissing
from selfhost.deploy.run import Run
from selfhost.deploy.runtime import of_state
from selfhost.hosts import memory
from selfhost.plan.command_line import command_line
from selfhost.shapes.host import Known
from selfhost.shapes.units import format_bytes


def memory_now(run: Run) -> None:
    """Refuse when the memory is not free now: before the download, and again when nobody else can be starting.

    What this deployment's own engine occupies will be free. Raises EnvironmentMissing.
    """
    if run.plan.device != "cpu":
        return
    free = memory.read(run.work.system).available
    if not isinstance(free, Known):
        return
    own = of_state(run.state, paths=run.work.paths, system=run.work.system).memory_bytes(run.plan.name) or 0
    if free.value + own >= run.plan.memory.need:
        return
    raise EnvironmentMissing(
        f"{run.plan.name} needs {format_bytes(run.plan.memory.need)} of memory; "
        f"{format_bytes(free.value + own)} are free now",
        why=f"Read from {free.how}. The rest is in use by other processes.",
        fix=(
            "end what is not needed, then run the same command again:\n" + command_line("up", run.gathered.service),
            "or plan smaller:\n"
            + command_line("up", run.gathered.service, change={"context": str(max(256, run.plan.context // 4))}),
        ),
        id="PL010",
    )
