"""`selfhost prepare`: make this machine ready for containers, and say what that changed."""

from enum import StrEnum
from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json, Progress, Yes
from selfhost.shapes.exit import ExitCode


class Role(StrEnum):
    """As in playbooks/roles."""

    DOCKER = "docker"
    PODMAN = "podman"
    NVIDIA = "nvidia_container_toolkit"
    AMD = "amd_access"


Check = Annotated[bool, typer.Option("--check", help="Only say what would change; 1 when something would.")]
Only = Annotated[
    list[Role] | None, typer.Option("--only", help="This role, needed or not; may be repeated.", show_default=False)
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A variable of a role (docs/prepare.md); may be repeated.",
        show_default=False,
    ),
]


def command(
    context: typer.Context,
    check: Check = False,
    only: Only = None,
    settings: Set = None,
    yes: Yes = False,
    progress: Progress = "auto",
    json: Json = False,
) -> ExitCode:
    """Install and set up what containers need here. Drivers are checked, never installed."""
    from selfhost.cli._prepare import document, lines
    from selfhost.cli._work import workplace
    from selfhost.deploy.prepare import prepare

    at_work = invocation(context)
    result = prepare(
        workplace(at_work, progress=progress, yes=yes),
        check=check,
        only=[one.value for one in only or ()],
        settings=settings or (),
    )
    at_work.close()
    if json:
        at_work.console.json(document(result))
    else:
        at_work.console.result("\n".join(lines(result)))
    return result.exit_code
