"""`selfhost down`: end a deployment, prove that it is gone, print the receipt."""

from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json, Progress, Yes

Target = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Needed when more than one is here.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another command that is at work on this deployment.")]
Purge = Annotated[bool, typer.Option("--purge", help="Also remove its compile caches, when nobody else uses them.")]
WAIT_S = 3600.0


def command(
    context: typer.Context,
    name: Target = None,
    wait: Wait = False,
    purge: Purge = False,
    yes: Yes = False,
    progress: Progress = "auto",
    json: Json = False,
) -> None:
    """Stop a deployment, remove what it made, and prove that it is gone."""
    from selfhost.cli._work import workplace
    from selfhost.core.names import check_name
    from selfhost.deploy.down import down
    from selfhost.deploy.names import the_only

    at_work = invocation(context)
    chosen = check_name(the_only(at_work.paths, name))
    receipt = down(workplace(at_work, progress=progress, yes=yes), chosen, wait_s=WAIT_S if wait else 0.0, purge=purge)
    at_work.close()
    if json:
        at_work.console.json(receipt.to_json())
    else:
        at_work.console.result("\n".join(receipt.lines()))
