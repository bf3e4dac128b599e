"""`selfhost status`: what runs here, seen by asking it."""

from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json
from selfhost.runtimes.deployments import names

Target = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this deployment.")]


def command(context: typer.Context, name: Target = None, json: Json = False) -> None:
    """What runs here, whether it answers, and where."""
    at_work = invocation(context)
    found = []
    if name is not None or names(at_work.paths):
        from selfhost.deploy.status import status

        found = status(at_work.paths, at_work.system, say=at_work.console.finding, only=name)
    if name is not None and not found:
        from selfhost.core.names import check_name
        from selfhost.deploy.names import unknown

        raise unknown(at_work.paths, check_name(name))
    if json:
        rows = [row.to_json() for row in found]
        at_work.console.json({"schema": "selfhost.status/1", "ok": True, "deployments": rows})
    elif found:
        from selfhost.deploy.status_words import lines

        at_work.console.result("\n\n".join("\n".join(lines(row)) for row in found))
    else:
        at_work.console.note("nothing is deployed here\n  → selfhost up")
