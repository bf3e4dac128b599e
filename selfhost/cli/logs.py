"""`selfhost logs`: the engine's own log."""

from typing import Annotated

import typer

from selfhost.cli._context import invocation

Target = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Needed when more than one is here.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")]
Tail = Annotated[int | None, typer.Option("--tail", "-n", metavar="N", help="Only the last N lines.", min=0)]


def command(context: typer.Context, name: Target = None, follow: Follow = False, tail: Tail = None) -> None:
    """The engine's own log of the last start."""
    from selfhost.core.paths import check_name
    from selfhost.deploy import logs
    from selfhost.deploy.endpoint import the_only, unknown_deployment
    from selfhost.runtimes.process import ProcessRuntime

    at_work = invocation(context)
    chosen = check_name(the_only(at_work.paths, name))
    path = ProcessRuntime(at_work.paths, at_work.system).logs(chosen)
    if not path.exists():
        if not at_work.paths.deployment(chosen).exists():
            raise unknown_deployment(at_work.paths, chosen)
        at_work.console.note(f"{chosen} has no log yet: its engine was never started")
        return
    if follow:
        for text in logs.follow(path, count=tail):
            at_work.console.out.write(text)
    else:
        at_work.console.out.write(logs.last_lines(path, tail))
