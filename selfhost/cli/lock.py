"""`selfhost lock`: what runs here, written down so that another machine can be told to have the same."""

from pathlib import Path
from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import File, Json, Progress
from selfhost.cli._stack_file import stack_of
from selfhost.shapes.exit import ExitCode

Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="LOCK", help="Beside the file by default.", show_default=False),
]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 where the lock differs from what runs.")]


def command(
    context: typer.Context,
    file: File = None,
    output: Output = None,
    check: Check = False,
    progress: Progress = "auto",
    json: Json = False,
) -> ExitCode:
    """Record digests, versions and sums of what runs, for `up --locked`. Exit 4: a service was never started."""
    from selfhost.cli._work import workplace
    from selfhost.deploy.lock_here import lock_here, refuse_unfinished
    from selfhost.deploy.lockfile import read_lock, write_lock
    from selfhost.deploy.locking import compared, to_json, words
    from selfhost.stack.find import LOCK

    at_work = invocation(context)
    stack = stack_of(file)
    path = Path(output) if output else Path(stack.path).parent / LOCK
    before = read_lock(path) if check else {}
    locked = lock_here(workplace(at_work, progress=progress), stack.services)
    at_work.close()
    refuse_unfinished(locked, file=stack.path)
    found = compared(before, locked.entries) if check else {}
    changed = False if check else write_lock(path, locked.entries)
    if json:
        at_work.console.json(to_json(locked.entries, path=str(path), changed=changed, found=found))
    else:
        at_work.console.result(words(locked.entries, path=str(path), changed=changed, found=found, check=check))
        for remark in locked.remarks:
            at_work.console.note(f"  – {remark}")
    return ExitCode.NO if any(found.values()) else ExitCode.OK
