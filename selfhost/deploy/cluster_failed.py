"""The errors of a start in a cluster that did not end well: what was seen, doctor's cause, and the way on."""

from selfhost.core.errors import DeployFailed, EnvironmentMissing
from selfhost.deploy.cluster_stage import Stage
from selfhost.deploy.cluster_steps import of
from selfhost.deploy.run import Run
from selfhost.deploy.wording import look_at
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.units import format_duration

_WHERE = {
    "refused": "no pod could be made",
    "scheduling": "no node takes its pod",
    "pulling": "its container does not start",
    "fetching": "its weights do not come",
    "ended": "its engine ended",
}


def hopeless(run: Run, stage: Stage, found: tuple[Finding, ...], *, after_s: float) -> DeployFailed:
    """For what no waiting mends."""
    first = next((one for one in found if one.severity is Severity.ERROR), None)
    where = _WHERE.get(stage.name, stage.text)
    what = f"{run.plan.name} will not start: {where}, seen after {format_duration(after_s)}"
    if first is None:
        return DeployFailed(
            what,
            why=stage.hopeless or stage.text,
            fix=(_events(run), _again(run), _down(run)),
            id="RT146",
        )
    return DeployFailed(
        f"{what}. {first.title}",
        why=first.why,
        evidence=first.evidence or stage.hopeless,
        fix=(*first.fix, _again(run), _down(run)),
        id=first.id,
        place=first.place,
    )


def given_up(run: Run, stage: Stage, over: str, found: tuple[Finding, ...], *, after_s: float) -> DeployFailed:
    """For a Deployment whose own deadline is over."""
    first = next((one for one in found if one.severity is Severity.ERROR and one.id != "KX022"), None)
    return DeployFailed(
        f"{run.plan.name} is not ready after {format_duration(after_s)}: {first.title if first else stage.text}",
        why=first.why if first else f"Layer: the Deployment's progress deadline: {over}",
        evidence=(first.evidence if first else "") or over,
        fix=(*(first.fix if first else (_events(run),)), _again(run), _down(run)),
        id=first.id if first else "RT148",
    )


def out_of_sight(run: Run, why: str, *, after_s: float) -> EnvironmentMissing:
    """For a cluster that is not heard of any more."""
    return EnvironmentMissing(
        f"the cluster of `{of(run).context}` is not heard of for {format_duration(after_s)}; {run.plan.name} may go on",
        why=f"Layer: the network between here and the API server: {why}. Nothing was ended or removed.",
        fix=(
            f"when it is back, the same command looks at what is there, and continues:\n{_command(run)}",
            f"see whether kubectl reaches it:\nkubectl --context {of(run).context} get --raw /readyz",
        ),
        id="RT149",
    )


def silent_pod(run: Run, stage: Stage, *, after_s: float) -> DeployFailed:
    """For an engine that neither speaks nor gets ready."""
    return DeployFailed(
        f"{shown(run.plan.build.engine)} said nothing for {format_duration(after_s)}: {stage.text}",
        why="It still runs; a hang prints no line, so its cause can't be read from the log.",
        fix=(f"look at its log:\n{look_at(run.runtime.log(run.plan.name).where)}", _down(run)),
        id="EF074",
    )


def _events(run: Run) -> str:
    plan = of(run)
    return f"see what the cluster says:\nkubectl --context {plan.context} get events --namespace {plan.namespace}"


def _command(run: Run) -> str:
    return command_line("up", run.gathered.service)


def _again(run: Run) -> str:
    return f"then run the same command again; it continues here:\n{_command(run)}"


def _down(run: Run) -> str:
    return f"or take it down; the volume with the weights stays:\nselfhost down {run.plan.name}"
