"""The commands, by name, and the help that lists them. Nothing here needs typer, so plain help starts without it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selfhost import __version__
from selfhost.core.columns import columns
from selfhost.core.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A file in this folder. `passes_on`: takes ENGINE FLAGS behind `--`."""

    panel: str
    help: str
    passes_on: bool = False


PANELS: Final = ("Start", "Understand", "Check", "Operate")
COMMANDS: Final = {
    "up": Row(panel="Start", help="Bring a model up and check that it answers sanely.", passes_on=True),
    "status": Row(panel="Start", help="What runs here, whether it answers, and where."),
    "detect": Row(panel="Understand", help="What this machine offers, and how that is known."),
    "doctor": Row(panel="Understand", help="What keeps a card from being used here, where, and what to do."),
    "fit": Row(panel="Understand", help="Whether a model fits, here or on cards you do not own.", passes_on=True),
    "plan": Row(panel="Understand", help="What `up` would do and why; changes nothing.", passes_on=True),
    "models": Row(panel="Understand", help="The models that are known by a short name."),
    "lint": Row(panel="Check", help="Mistakes in container files and launch scripts, also those of others."),
    "explain": Row(panel="Check", help="The root cause in an engine's log, or the meaning of an id."),
    "smoke": Row(panel="Check", help="Ask a running endpoint until it has shown that it is sane."),
    "render": Row(panel="Operate", help="Write the files that start a model without selfhost.", passes_on=True),
    "init": Row(panel="Operate", help="Write a first selfhost.yaml for this machine."),
    "lock": Row(panel="Operate", help="Record digests, versions and sums of what runs, for `up --locked`."),
    "logs": Row(panel="Operate", help="The engine's own log."),
    "down": Row(panel="Operate", help="Stop a deployment and prove that it is gone."),
    "prepare": Row(panel="Operate", help="Make this machine ready for containers: Docker, Podman, toolkits, groups."),
}
GLOBAL_OPTIONS: Final = (
    ("--color WHEN", "Colours: auto, always or never."),
    ("-q, --quiet", "Only results and errors."),
    ("--version", "The version, and nothing else."),
    ("--help", "This text; with a command, its options."),
)


def help_text() -> str:
    """The help of `selfhost` itself: panels of commands, then the options of all of them."""
    return "\n".join(_help_lines())


def as_json() -> dict[str, object]:
    """What `--help` and `--version` say, for programs."""
    commands = [{"name": name, "panel": row.panel, "help": row.help} for name, row in COMMANDS.items()]
    return {"schema": "selfhost.commands/1", "ok": True, "version": __version__, "commands": commands}


def unknown(name: str) -> InputError:
    import difflib  # at use: only a wrong name needs it

    near = difflib.get_close_matches(name, COMMANDS, n=3, cutoff=0.7)
    return InputError(
        f"there is no command `{name}`",
        fix=(*(f"perhaps:\nselfhost {match}" for match in near), "all commands:\nselfhost --help"),
        id="CF090",
    )


def _help_lines() -> Iterator[str]:
    yield "Usage: selfhost [OPTIONS] COMMAND [ARGS]..."
    yield ""
    yield "From a bare machine to a checked OpenAI-compatible endpoint."
    rows = [(name, row.help) for name, row in COMMANDS.items()]
    lines = columns([*rows, *GLOBAL_OPTIONS])
    for panel in PANELS:
        yield from ("", panel)
        yield from (f"  {line}" for (name, _), line in zip(rows, lines, strict=False) if COMMANDS[name].panel == panel)
    yield from ("", "Options")
    yield from (f"  {line}" for line in lines[len(rows) :])
    yield from ("", "  selfhost COMMAND --help     what one command takes")
