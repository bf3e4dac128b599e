"""`selfhost models`: what has a short name."""

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json


def command(context: typer.Context, json: Json = False) -> None:
    """The models that are known by a short name; any other works by its Hugging Face id or folder."""
    from selfhost.models.table import as_json, lines

    console = invocation(context).console
    if json:
        console.json(as_json())
        return
    console.result("\n".join(lines()))
    console.note("\n  → selfhost plan NAME        what would be served here, and why")
