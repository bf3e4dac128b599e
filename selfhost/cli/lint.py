"""`selfhost lint`: mistakes in container files and launch scripts, also those of others."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json
from selfhost.core.errors import InputError
from selfhost.shapes.exit import ExitCode

if TYPE_CHECKING:
    from selfhost.cli._findings import Verdict
    from selfhost.core.system import System
    from selfhost.shapes.host import Host

Format = Literal["human", "json", "github", "sarif"]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE|DIR|-]...", help="What to read; compose.yaml here when nothing is named."),
]
On = Annotated[
    str | None,
    typer.Option(
        "--host",
        "--from",
        metavar="FILE|user@machine",
        help="The machine the files are meant for.",
        show_default=False,
    ),
]
AsFormat = Annotated[Format, typer.Option("--format", help="How findings are written.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 on warnings too.")]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="ID", help="A rule to leave out; may be repeated.", show_default=False),
]
Pid = Annotated[
    int | None, typer.Option("--pid", metavar="N", help="A running process instead of a file.", show_default=False)
]


def command(
    context: typer.Context,
    targets: Targets = None,
    host: On = None,
    form: AsFormat = "human",
    strict: Strict = False,
    ignore: Ignore = None,
    pid: Pid = None,
    json: Json = False,
) -> ExitCode:
    """Mistakes in Compose files, run lines, Quadlets, Kubernetes objects, launch and batch scripts."""
    from selfhost.cli._findings import FORMATS
    from selfhost.cli._lint import judged
    from selfhost.visibility.lint import host_rule_count

    at_work = invocation(context)
    chosen = "json" if json else form
    at_work.console.json_asked = chosen in ("json", "sarif")
    system = _eyes(at_work, host)
    machine = _machine(system) if host else None
    verdict, code = judged(
        targets or [], host=machine, ignore=_ids(ignore or []), strict=strict, pid=pid, system=system
    )
    FORMATS[chosen](at_work.console, verdict)
    if chosen == "human":
        _closing(at_work, verdict, 0 if host else host_rule_count())
    return code


def _closing(at_work: Invocation, verdict: "Verdict", needing: int) -> None:
    from selfhost.cli._findings import first_ids

    shown = next(first_ids(verdict.findings), "")
    if shown:
        at_work.console.note(f"  → selfhost explain {shown}       the rule, with a good and a bad example")
    if needing:
        at_work.console.note(f"  → {needing} rules say more with --host: a snapshot of `selfhost detect --save`")


def _ids(asked: list[str]) -> frozenset[str]:
    from selfhost.visibility.lint import rules
    from selfhost.visibility.suppress import as_id

    chosen = frozenset(as_id(word.strip()) for text in asked for word in text.split(",") if word.strip())
    wrong = sorted(asked for asked in chosen if asked not in rules() and not asked.startswith("CF"))
    if wrong:
        raise InputError(
            f"--ignore {wrong[0]}: there is no such rule", fix=("name an id as findings print it",), id="CF074"
        )
    return chosen


def _eyes(at_work: Invocation, host: str | None) -> "System":
    from selfhost.cli._eyes import eyes

    return eyes(at_work, host=host, inside=None)


def _machine(system: "System") -> "Host":
    from selfhost.hosts.detect import detect

    return detect(system, wide=True)
