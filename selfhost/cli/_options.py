"""Options that commands share, spelled once; `--color` and `--quiet` are added to every command by its group."""

from typing import Annotated, Literal

import typer

from selfhost.cli._context import invocation

Choice = Literal["auto", "tty", "plain", "json", "quiet"]
ColorChoice = Literal["auto", "always", "never"]


def _set_color(context: typer.Context, value: str | None) -> str | None:
    if value is not None:
        invocation(context).console.recolour(value)
    return value


def _set_quiet(context: typer.Context, value: bool) -> bool:
    if value:
        invocation(context).console.quiet = True
    return value


Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="The deployment's name.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Agree to what would be asked.")]
Progress = Annotated[Choice, typer.Option("--progress", help="How progress is shown on stderr.")]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="DEVICE", help="cpu, auto, or an accelerator's index or uuid.", show_default=False
    ),
]
File = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="The services of this file, not ./selfhost.yaml.", show_default=False
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write files anew that you edited; your versions are kept beside them.")
]
Color = Annotated[
    ColorChoice | None,
    typer.Option("--color", help="Colours: auto, always or never.", callback=_set_color, show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results and errors.", callback=_set_quiet)]
