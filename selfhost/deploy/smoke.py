"""The step `smoke`: the whole check after a start, a quick one when nothing has changed since."""

from datetime import UTC, datetime
from enum import Enum

from selfhost.deploy.endpoint import EngineInspector, describe_endpoint, key_of
from selfhost.deploy.run import Run
from selfhost.deploy.state import Checks
from selfhost.runtimes.base import Seen
from selfhost.shapes.exit import ExitCode
from selfhost.smoke import runner

STEP = "smoke"
HEALTH_S = 15.0
"""A loaded engine still answers /health at once; one that does not for this long has stopped working."""


class Running(Enum):
    """What one request shows of an engine of the right plan."""

    CHECKED = "it answers, and was checked since its start"
    UNCHECKED = "it may answer, and was not checked since its start, or not passed"
    USELESS = "it was ready once and does not answer any more, or does not know our key"


def check(run: Run) -> str:
    """Run every smoke check against the engine and keep the result; return the words for the finished step."""
    endpoint = describe_endpoint(run.plan, run.state)
    instance = run.runtime.inspect(run.plan.name).instance
    report = runner.run(
        endpoint,
        key=key_of(run.plan, run.state),
        inspector=EngineInspector(run.runtime, run.plan.name),
        sink=run.work.sink,
    )
    run.report = report
    run.state.write_checks(
        Checks(
            plan_digest=run.digest,
            instance=instance,
            at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
            exit_code=int(report.exit_code),
            summary=report.summary(),
            report=report.to_json(),
        )
    )
    counts = (
        (report.count("passed"), "passed"),
        (report.count("failed", "error"), "failed"),
        (report.count("skipped", "undecided"), "not run"),
    )
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def quick(run: Run, seen: Seen) -> tuple[Running, Checks | None]:
    """One generation, and whether the kept result is for this very start and plan. A failed one is not kept."""
    from selfhost.core.http import Client  # at use: 187 ms
    from selfhost.deploy.generation import one_token

    kept = run.state.checks()
    ours = kept is not None and (kept.plan_digest, kept.instance) == (run.digest, seen.instance)
    with Client(run.plan.base_url, key=key_of(run.plan, run.state)) as client:
        answer = one_token(client, run.plan.model)
        if answer.status == 401:
            return Running.USELESS, None
        if answer.ok and ours and kept is not None and kept.exit_code != ExitCode.NO:
            return Running.CHECKED, kept
        if ours and not answer.ok:
            root = run.plan.base_url.removesuffix("/v1")
            if client.request("GET", f"{root}/health", timeout_s=HEALTH_S).status != 200:
                return Running.USELESS, None
    return Running.UNCHECKED, None
