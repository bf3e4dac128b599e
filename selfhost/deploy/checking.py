"""The step `smoke`: the whole check after a start, a quick one when nothing has changed since."""

from datetime import UTC, datetime

from selfhost.core.secret import read_key
from selfhost.deploy.endpoint import EngineInspector, describe_endpoint
from selfhost.deploy.run import Run
from selfhost.deploy.state import Checks
from selfhost.runtimes.process import ProcessRuntime
from selfhost.smoke import runner

STEP = "smoke"


def check(run: Run, runtime: ProcessRuntime, *, instance: str) -> str:
    """Run every smoke check against the engine and keep the result; return the words for the finished step."""
    endpoint = describe_endpoint(run.plan, run.state)
    report = runner.run(
        endpoint,
        key=read_key(run.state.key_file),
        inspector=EngineInspector(runtime, run.plan.name),
        sink=run.work.sink,
    )
    run.report = report
    run.state.write_checks(
        Checks(
            plan_digest=run.digest,
            instance=instance,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            exit_code=int(report.exit_code),
            summary=report.summary(),
            report=report.to_json(),
        )
    )
    return report.summary()


def quick(run: Run, *, instance: str) -> Checks | None:
    """The kept result when it was for this very engine start and plan, and the engine answers one request now."""
    kept = run.state.checks()
    if kept is None or kept.plan_digest != run.digest or kept.instance != instance:
        return None
    return kept if answers(run) else None


def answers(run: Run) -> bool:
    """One real generation of one token."""
    from selfhost.core.http import Client  # at use: 187 ms

    body = {
        "model": run.plan.model.served_name,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 1,
        "temperature": 0,
    }
    base = f"http://{run.plan.address}:{run.plan.port}/v1"
    with Client(base, key=read_key(run.state.key_file), timeout_s=5.0) as client:
        return client.post("/chat/completions", body).ok
