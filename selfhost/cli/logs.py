"""`selfhost logs`: the engine's own log."""

from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json

Target = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Needed when more than one is here.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")]
Tail = Annotated[int | None, typer.Option("--tail", "-n", metavar="N", help="Only the last N lines.", min=0)]


def command(
    context: typer.Context, name: Target = None, follow: Follow = False, tail: Tail = None, json: Json = False
) -> None:
    """The engine's own log of the last start."""
    from selfhost.core.errors import InputError
    from selfhost.core.names import check_name
    from selfhost.deploy import logs
    from selfhost.deploy.names import the_only, unknown
    from selfhost.deploy.state import State

    at_work = invocation(context)
    chosen = check_name(the_only(at_work.paths, name))
    state = State(at_work.paths, chosen, say=at_work.console.finding)
    log = logs.log_of(state, paths=at_work.paths, system=at_work.system)
    if json and follow:
        raise InputError(
            "--json and --follow exclude each other",
            why="A document has an end, a followed log has none.",
            fix=(f"leave one of them out:\nselfhost logs {chosen} --follow",),
            id="CF014",
        )
    if not log.exists:
        raise unknown(at_work.paths, chosen)
    if json:
        lines = log.last(tail).splitlines()
        at_work.console.json(
            {"schema": "selfhost.logs/1", "ok": True, "name": chosen, "path": log.where, "lines": lines}
        )
        return
    for text in logs.follow(log, state, count=tail) if follow else (log.last(tail),):
        at_work.console.out.write(text)
