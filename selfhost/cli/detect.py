"""`selfhost detect`: what this machine offers, and how that is known."""

from pathlib import Path
from typing import Annotated

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json
from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System

From = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="A saved snapshot instead of this machine.", show_default=False),
]


def command(context: typer.Context, snapshot: From = None, json: Json = False) -> None:
    """What this machine offers for serving a model, and how each fact is known."""
    from selfhost.cli._machine import lines, summary
    from selfhost.hosts.detect import detect
    from selfhost.hosts.to_json import to_json

    at_work = invocation(context)
    system = _eyes(at_work, snapshot)
    host = detect(system, disk_paths=("/",) if snapshot else ("/", *_own_folders(at_work)))
    if json:
        at_work.console.json(to_json(host))
        return
    at_work.console.result("\n".join(lines(host, at_work.console.out)))
    at_work.console.note(f"\n{summary(host)}")
    at_work.console.note("  → selfhost plan        what would be served here, and why")


def _own_folders(at_work: Invocation) -> tuple[str, ...]:
    """None for a user without a home: what the machine is can be seen all the same."""
    try:
        paths = at_work.paths
    except EnvironmentMissing:
        return ()
    return str(paths.cache), str(paths.state)


def _eyes(at_work: Invocation, snapshot: Path | None) -> System:
    if snapshot is None:
        return at_work.system
    from selfhost.core.recorded import Recorded

    return Recorded.load(snapshot)
