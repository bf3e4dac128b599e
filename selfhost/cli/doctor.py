"""`selfhost doctor`: what keeps a card from being used here, where the fix belongs, and what it is."""

from typing import TYPE_CHECKING, Annotated

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json
from selfhost.core.errors import InputError
from selfhost.shapes.exit import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from selfhost.core.system import System
    from selfhost.doctor.prove import Proof
    from selfhost.shapes.finding import Finding
    from selfhost.shapes.host import Host

On = Annotated[
    str | None,
    typer.Option(
        "--host", "--from", metavar="FILE|user@machine", help="Another machine than this one.", show_default=False
    ),
]
Inside = Annotated[
    str | None,
    typer.Option(
        "--inside",
        metavar="NAME|CONTAINER|pod/NAME",
        help="Compare what a container, or a deployment's, was granted with what works in it.",
        show_default=False,
    ),
]
FixScript = Annotated[
    bool, typer.Option("--fix-script", help="Write the fixes as scripts into DIR, one a machine; runs none.")
]
Folder = Annotated[
    str | None, typer.Argument(metavar="[DIR|-]", help="Where --fix-script writes, - for stdout.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace scripts that selfhost did not write.")]
Prove = Annotated[bool, typer.Option("--prove", help="Open the cards in a throw-away container, for each engine.")]


def command(
    context: typer.Context,
    folder: Folder = None,
    host: On = None,
    inside: Inside = None,
    fix_script: FixScript = False,
    overwrite: Overwrite = False,
    prove: Prove = False,
    json: Json = False,
) -> ExitCode:
    """What keeps a card from being used here, on which machine the fix belongs, and what it is. Changes nothing."""
    from selfhost.cli._doctor import document, lines, summary
    from selfhost.cli._doctor_look import look_at
    from selfhost.shapes.finding import Report

    _check(folder, inside=inside, host=host, fix_script=fix_script, prove=prove, json=json)
    at_work = invocation(context)
    looked = look_at(at_work, host=host, inside=inside)
    examination, comparison = looked.examination, looked.comparison
    proofs = _proven(at_work.system, looked.machine) if prove else ()
    findings = (*examination.report.findings, *(comparison.findings if comparison else ()))
    written = _write(at_work, findings, folder or ".", overwrite=overwrite) if fix_script else ()
    if json:
        at_work.console.json(document(looked, findings, proofs, written))
    elif folder != "-":
        at_work.console.result("\n".join([*looked.head, *lines(at_work.console, examination, comparison, proofs)]))
        at_work.console.note(f"\n{summary(findings, written)}")
    shown_bad = any(proof.outcome == "bad" for proof in proofs)
    return ExitCode.NO if shown_bad else Report.of(findings).exit_code


def _check(
    folder: str | None, *, inside: str | None, host: str | None, fix_script: bool, prove: bool, json: bool
) -> None:
    """Options that do not go together."""
    if folder is not None and not fix_script:
        raise InputError(
            f"doctor takes no `{folder}`",
            why="A folder is where --fix-script writes to.",
            fix=(f"write scripts there:\nselfhost doctor --fix-script {folder}",),
            id="CF100",
        )
    if prove and (host or inside):
        raise InputError(
            "--prove starts a container on this machine, and another one was named",
            fix=("run it on that machine:\nselfhost doctor --prove",),
            id="CF101",
        )
    if json and folder == "-":
        raise InputError(
            "--json and --fix-script - both want stdout",
            fix=("name a folder:\nselfhost doctor --json --fix-script .",),
            id="CF102",
        )


def _proven(system: "System", machine: "Host") -> "tuple[Proof, ...]":
    from selfhost.doctor.prove import prove

    return prove(system, machine)


def _write(at_work: Invocation, findings: "Sequence[Finding]", folder: str, *, overwrite: bool) -> tuple[str, ...]:
    """Paths written. `-` prints them all."""
    from selfhost.cli._doctor import write
    from selfhost.doctor.fix_script import scripts

    texts = scripts(findings)
    if folder == "-":
        at_work.console.result("\n".join(f"# ---- {name}\n{text}" for name, text in texts.items()).rstrip("\n"))
        return ()
    return write(texts, folder, overwrite=overwrite)
