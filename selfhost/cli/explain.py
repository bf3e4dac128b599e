"""`selfhost explain`: the root cause in an engine's log, or the meaning of an id."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding, Report

if TYPE_CHECKING:
    from selfhost.cli._engine import Judged

Target = Annotated[
    str, typer.Argument(metavar="LOG", help="A log file, - for stdin, a deployment's name, or an id such as EF005.")
]
ExitStatus = Annotated[
    int | None, typer.Option("--exit-code", metavar="N", help="How the engine ended, such as 137.", show_default=False)
]


def command(context: typer.Context, target: Target, exit_code: ExitStatus = None, json: Json = False) -> ExitCode:
    """The root cause in an engine's log, or the meaning of an id."""
    from selfhost.cli._log import read
    from selfhost.cli._page import page
    from selfhost.engines.explain import explain

    at_work = invocation(context)
    log = read(target, paths=at_work.paths, system=at_work.system)
    if log is None:
        return _rule(at_work, page(target), json=json)
    if log.deployment:
        from selfhost.cli._engine import judge

        verdict = judge(log, at_work=at_work, exit_code=exit_code)
        return _engine(at_work, verdict, json=json)
    found = [log.placed(finding) for finding in explain(log.text, exit_code=exit_code)]
    if not found:
        return _undecided(at_work, log.nothing_known(), json=json)
    return _found(at_work, found, json=json)


def _engine(at_work: Invocation, verdict: "Judged", *, json: bool) -> ExitCode:
    """How an engine of ours fares, then why."""
    if verdict.undecided is not None:
        return _undecided(at_work, verdict.undecided, json=json)
    if json:
        at_work.console.json({**Report.of(verdict.causes).to_json(), "text": verdict.state})
        return Report.of(verdict.causes).exit_code
    at_work.console.result(verdict.state)
    return _found(at_work, verdict.causes, json=False) if verdict.causes else ExitCode.OK


def _found(at_work: Invocation, found: Sequence[Finding], *, json: bool) -> ExitCode:
    report = Report.of(found)
    if json:
        at_work.console.json(report.to_json())
    else:
        at_work.console.result(at_work.console.render(found[0], terminal=at_work.console.out))
        for also in found[1:]:
            at_work.console.note(f"also seen: {also.id} {also.title}, line {also.place.line}")
    return report.exit_code


def _rule(at_work: Invocation, rule: Finding | str, *, json: bool) -> ExitCode:
    if json:
        content = {"text": rule} if isinstance(rule, str) else {"rule": rule.to_json()}
        at_work.console.json({"schema": "selfhost.rule/1", "ok": True, **content})
    elif isinstance(rule, str):
        at_work.console.result(rule.rstrip("\n"))
    else:
        text = at_work.console.render(rule, terminal=at_work.console.out)
        at_work.console.result(f"{text}\n  source: {rule.source}")
    return ExitCode.OK


def _undecided(at_work: Invocation, nothing: Finding, *, json: bool) -> ExitCode:
    if json:
        at_work.console.json({**Report().to_json(), "ok": False, "undecided": nothing.title})
    else:
        at_work.console.finding(nothing)
    return ExitCode.UNDECIDED
