"""`selfhost status`: what runs here, seen by asking it."""

from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json
from selfhost.cli._status import answer

Target = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this deployment.")]


def command(context: typer.Context, name: Target = None, json: Json = False) -> None:
    """What runs here, whether it answers, and where."""
    answer(invocation(context), name=name, json=json)
