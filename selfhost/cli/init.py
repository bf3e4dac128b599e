"""`selfhost init`: a first selfhost.yaml for this machine; never over one that is there."""

from pathlib import Path
from typing import Annotated

import typer

from selfhost.cli._context import invocation
from selfhost.cli._options import Json
from selfhost.core.errors import EnvironmentMissing, InputError

Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Another file than ./selfhost.yaml.")
]
Schema = Annotated[bool, typer.Option("--schema", help="Only print the JSON Schema of the file, for editors.")]


def command(context: typer.Context, output: Output = None, schema: Schema = False, json: Json = False) -> None:
    """Write a commented selfhost.yaml for this machine; one that is there stays as it is."""
    from selfhost.stack import json_schema
    from selfhost.stack.find import NAME

    at_work = invocation(context)
    if schema:
        at_work.console.result(json_schema.to_text().rstrip("\n"))
        return
    path = Path(output or NAME)
    _refuse_existing(path)
    from selfhost.cli._work import workplace
    from selfhost.deploy.starting import starter_for

    text = starter_for(workplace(at_work, progress="quiet"))
    _write(path, text)
    if json:
        at_work.console.json({"schema": "selfhost.init/1", "ok": True, "path": str(path), "text": text})
        return
    at_work.console.result(f"{path} written")
    at_work.console.note("  → look at it, then start what it says:\n      selfhost up")


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InputError(
            f"{path} exists and is not overwritten",
            fix=("see what it would start:\nselfhost plan", f"or write another one:\nselfhost init -o new-{path.name}"),
            id="CF038",
        )


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as stream:  # two at once: the second is refused, too
            stream.write(text)
    except FileExistsError:
        _refuse_existing(path)
    except OSError as error:
        raise EnvironmentMissing(
            f"{path} cannot be written: {error.strerror}",
            fix=("write it elsewhere:\nselfhost init -o /path/that/is/yours/selfhost.yaml",),
            id="CF038",
        ) from None
