"""The typer group: a command's file is imported when it is called, never for help."""

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as build

import selfhost
from selfhost.cli._commands import COMMANDS, help_text, unknown
from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Color, Quiet
from selfhost.cli._usage import translate
from selfhost.shapes.exit import ExitCode


class PassOn(TyperCommand):
    """A command that keeps what stands behind `--` apart: it is the engine's, not ours to parse."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            border = args.index("--")
            invocation(ctx).passed_on = tuple(args[border + 1 :])
            args = args[:border]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ENGINE FLAGS]"]


class Commands(TyperGroup):
    """The group of all commands, each loaded when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's signature
        return load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS:
            raise unknown(args[0])
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        formatter.write(help_text() + "\n")


def call(argv: list[str], *, at_work: Invocation) -> int:
    """Parse `argv` and run its command. Wrong usage becomes an InputError.

    Not through typer's own `main`, which answers signals and broken pipes itself, with codes of its own.
    """
    commands = group()
    try:
        with commands.make_context("selfhost", argv, obj=at_work) as context:
            answer = commands.invoke(context)
    except typer.Exit as asked:
        return asked.exit_code
    except typer.TyperException as wrong:
        called = " ".join(["selfhost", *[word for word in argv if word in COMMANDS][:1]])
        raise translate(wrong, command=called) from wrong
    return ExitCode.OK if answer is None else int(answer)


def group() -> Commands:
    """The root command. `--version` beside other arguments is answered here; alone it never gets this far."""
    app = typer.Typer(cls=Commands, rich_markup_mode=None, add_completion=False)
    app.callback()(_root)
    built = build(app)
    if not isinstance(built, Commands):
        raise TypeError("typer did not build our group")
    return built


def load(name: str) -> Any:
    """Import `selfhost/cli/<name>.py` and build its `command`, with the options that all commands have."""
    row = COMMANDS[name]
    command = importlib.import_module(f"selfhost.cli.{name}").command
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, cls=PassOn if row.passes_on else TyperCommand, help=command.__doc__ or row.help)(command)
    built = build(app)
    built.params.extend(_shared_params({param.name for param in built.params}))
    return built


def _say_version(context: typer.Context, value: bool) -> bool:
    if value:
        invocation(context).console.result(f"selfhost {selfhost.__version__}")
        raise typer.Exit
    return value


def _root(
    color: Color = None,
    quiet: Quiet = False,
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_say_version)] = False,
) -> None:
    """Only declares the global options; their callbacks act."""
    del color, quiet, version


def _shared_params(present: set[str | None]) -> list[Any]:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(_shared)
    params = [param for param in build(app).params if param.name not in present]
    for param in params:
        param.expose_value = False
    return params


def _shared(color: Color = None, quiet: Quiet = False) -> None:
    """Carries the declarations of the options that every command has."""
    del color, quiet
