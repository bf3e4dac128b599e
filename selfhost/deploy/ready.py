"""What is said at the end of `up`: where it answers, what it is, how to use it, what was shown."""

from collections.abc import Sequence

from selfhost.core.console import Console
from selfhost.deploy.cluster_words import SERVICE, forward_command
from selfhost.deploy.endpoint import describe_endpoint
from selfhost.deploy.up import Result
from selfhost.engines.names import shown
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.plan import Plan
from selfhost.shapes.units import format_duration, format_tokens
from selfhost.smoke.client_line import curl_line, openai_line

HEADS = {ExitCode.OK: "Ready", ExitCode.UNDECIDED: "Running, undecided"}
INDENT = " " * 9


def lines(result: Result) -> list[str]:
    """The closing lines, without colour."""
    run = result.run
    plan = run.plan
    endpoint = describe_endpoint(plan, run.state)
    head = HEADS.get(result.exit_code, "Running, not passed")
    engine = f"{shown(plan.build.engine)} {plan.build.version}"
    what = (endpoint.base_url, f"model {endpoint.model}", engine, plan.device_name)
    rows = [
        f"{head:<9}{' · '.join(what)} · context {format_tokens(plan.context)}",
        f"{INDENT}{_reachable(plan)}",
        f"{INDENT}{_checked(result)}",
    ]
    if plan.reasoning.can_think:
        rows.append(f"{INDENT}reasoning {_mode(plan)}: {_unsent(plan)}")
    rows.extend(f"{INDENT}differs from the published model: {decision.value}" for decision in plan.differs)
    if plan.model.demonstration:
        rows.append(f"{INDENT}a demonstration model: it shows that the machine serves, not what a model can do")
    if result.fresh:
        rows.append(f"{INDENT}plumbing {format_duration(run.plumbing_s)} · model {format_duration(run.model_s)}")
    return [*rows, "", "from a shell:", f"  {curl_line(endpoint)}", "from Python:", f"  {openai_line(endpoint)}"]


def show(result: Result, console: Console) -> None:
    """What failed in detail, then the closing lines on stdout, then the next command."""
    if result.run.report is not None:
        for check in result.run.report.checks:
            if check.finding is not None and check.state == "failed":
                console.finding(check.finding)
    console.result("\n".join(lines(result)))
    name = result.run.plan.name
    console.note("")
    if result.exit_code is ExitCode.NO:
        console.note(f"  → the engine was left running; to end it:\n      selfhost down {name}")
    else:
        console.note(f"  → selfhost status {name}\n  → selfhost down {name}        ends it and removes what it made")


def to_json(result: Result) -> dict[str, object]:
    """selfhost.endpoint/1; the key is named by its file, never shown."""
    run = result.run
    endpoint = describe_endpoint(run.plan, run.state)
    return {
        "schema": "selfhost.endpoint/1",
        "ok": result.exit_code is ExitCode.OK,
        "exit_code": int(result.exit_code),
        "name": endpoint.name,
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "engine": endpoint.engine,
        "engine_version": endpoint.engine_version,
        "runtime": endpoint.runtime,
        "device": endpoint.device,
        "context": endpoint.context,
        "key_file": endpoint.key.path if endpoint.key else "",
        "reachable_from": "this machine only" if run.plan.cluster is None else forward_command(run.plan),
        "fresh": result.fresh,
        "smoke": result.checks.report,
        "summary": result.checks.summary,
        "checked_at": result.checks.at,
        "differs": [decision.value for decision in run.plan.differs],
        "plumbing_s": round(run.plumbing_s, 3),
        "model_s": round(run.model_s, 3),
    }


def all_to_json(results: Sequence[Result]) -> dict[str, object]:
    """selfhost.endpoints/1: several services of one file."""
    return {
        "schema": "selfhost.endpoints/1",
        "ok": all(result.exit_code is ExitCode.OK for result in results),
        "endpoints": [to_json(result) for result in results],
    }


def _reachable(plan: Plan) -> str:
    if plan.cluster is None:
        return "reachable from this machine only"
    where = f"http://{plan.cluster.release}.{plan.cluster.namespace}:{SERVICE}/v1"
    return f"reachable in the cluster at {where}; from here while this runs:\n{INDENT}{forward_command(plan)}"


def _checked(result: Result) -> str:
    if result.fresh:
        return result.checks.summary
    return f"unchanged; one generation answered now. At {result.checks.at}: {result.checks.summary}"


def _mode(plan: Plan) -> str:
    if plan.reasoning.budget_tokens is not None:
        return f"budget {plan.reasoning.budget_tokens}"
    return f"effort {plan.reasoning.effort}" if plan.reasoning.effort else plan.reasoning.mode.value


def _unsent(plan: Plan) -> str:
    if plan.reasoning.unsent == "served":
        return "a client that sends nothing gets exactly this"
    return f"only when the client sends {plan.reasoning.client_extras}"
