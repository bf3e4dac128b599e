"""`selfhost detect`: what this machine offers, and how that is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json
from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.system import LocalSystem, System

if TYPE_CHECKING:
    from selfhost.core.recorder import Recorder

On = Annotated[
    list[str] | None,
    typer.Option(
        "--host", "--from", metavar="FILE|user@machine", help="A snapshot or another machine.", show_default=False
    ),
]
Inside = Annotated[
    str | None,
    typer.Option(
        "--inside", metavar="CONTAINER|pod/NAME", help="As it looks from inside a container or pod.", show_default=False
    ),
]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Keep a snapshot without names, addresses, serials and secrets."),
]


def command(
    context: typer.Context, host: On = None, inside: Inside = None, save: Save = None, json: Json = False
) -> None:
    """What this machine offers for serving a model, and how each fact is known."""
    from selfhost.cli._eyes import eyes
    from selfhost.cli._machine import lines, summary
    from selfhost.hosts.detect import detect
    from selfhost.hosts.to_json import to_json

    at_work = invocation(context)
    if save is not None:
        from selfhost.core.snapshot_file import check_target

        check_target(save)  # before anything is looked at: a look at a machine far away takes time
    system = eyes(at_work, host=_only(host or []), inside=inside)
    recorder = _recorder(system) if save is not None else None
    folders = _own_folders(at_work) if isinstance(system, LocalSystem) else ()
    saved = save is not None
    found = detect(recorder or system, disk_paths=("/", *folders), wide=True, containers=saved, brief=not saved)
    if json:
        at_work.console.json(to_json(found))
    else:
        at_work.console.result("\n".join(lines(found, at_work.console.out)))
        at_work.console.note(f"\n{summary(found)}")
        at_work.console.note("  → selfhost doctor        what keeps a card from being used, and what to do")
    if save is not None and recorder is not None:
        _save(at_work, recorder, save)


def _only(named: list[str]) -> str | None:
    """One look is at one machine."""
    if len(named) > 1:
        raise InputError(
            f"--host names {len(named)} machines: {', '.join(named)}",
            why="--from is the same option, and one look is at one machine.",
            fix=(f"name one:\nselfhost detect --host {named[0]}",),
            id="CF095",
        )
    return named[0] if named else None


def _recorder(system: System) -> "Recorder":
    from selfhost.core.recorder import Recorder

    return Recorder(system)


def _save(at_work: Invocation, recorder: "Recorder", path: Path) -> None:
    from selfhost.core.snapshot_file import save

    counts = save(path, recorder.snapshot())
    replaced = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "nothing"
    at_work.console.note(f"\nsaved {path}; replaced: {replaced}")
    at_work.console.note(f"  → selfhost doctor --host {path}        on any machine")


def _own_folders(at_work: Invocation) -> tuple[str, ...]:
    """None for a user without a home: what the machine is can be seen all the same."""
    try:
        paths = at_work.paths
    except EnvironmentMissing:
        return ()
    return str(paths.cache), str(paths.state)
