"""`selfhost smoke`: ask a running endpoint until it has shown that it is sane."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json, Progress
from selfhost.core.console import Console
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding
from selfhost.smoke.report import SmokeReport

Target = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A deployment; not needed when there is one.")]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Any OpenAI-compatible endpoint.", show_default=False)
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="With --url: the model, when several are listed.", show_default=False),
]
KeyFile = Annotated[
    Path | None, typer.Option("--key-file", metavar="FILE", help="With --url: a file with its key.", show_default=False)
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="IDS", help="These checks and what they need: SM110,SM200.", show_default=False),
]
Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit report for CI.", show_default=False)
]


def command(
    context: typer.Context,
    name: Target = None,
    url: Url = None,
    model: ModelName = None,
    key_file: KeyFile = None,
    only: Only = None,
    junit: Junit = None,
    json: Json = False,
    progress: Progress = "auto",
) -> ExitCode:
    """Ask a running endpoint until it has shown that it is sane."""
    from selfhost.cli._endpoint import target
    from selfhost.cli._junit import check_place
    from selfhost.smoke.runner import run

    at_work = invocation(context)
    wanted = tuple(word.strip().upper() for text in only or () for word in text.split(",") if word.strip())
    if junit is not None:
        check_place(junit)
    endpoint, key, inspector = target(at_work, name=name, url=url, model=model, key_file=key_file)
    sink = at_work.sink("quiet" if json and progress == "auto" else progress)
    report = run(endpoint, key=key, inspector=inspector, only=wanted, sink=sink, system=at_work.system)
    sink.close()
    return _say(at_work, report, junit=junit, json=json)


def _say(at_work: Invocation, report: SmokeReport, *, junit: Path | None, json: bool) -> ExitCode:
    from selfhost.cli._junit import write
    from selfhost.smoke import describe

    if json:
        at_work.console.json(report.to_json())
    else:
        _show(at_work.console, report)
    if junit is not None:
        write(junit, describe.junit(report))
    return report.exit_code


def _show(console: Console, report: SmokeReport) -> None:
    """The rows, what did not pass in detail, a remark of a check that passed as one line, and the closing words."""
    from selfhost.smoke import describe

    console.result("\n".join([describe.head(report), "", *describe.lines(report, console.out), ""]))
    for check in report.checks:
        if check.finding is not None:
            whole = check.finding if check.state != "passed" else _headline(check.finding)
            console.result(console.render(whole, terminal=console.out) + "\n")
    console.result(describe.closing(report))


def _headline(finding: Finding) -> Finding:
    return replace(finding, why="", evidence="", fix=())
