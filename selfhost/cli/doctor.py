"""`selfhost doctor`: what keeps a card from being used here, where the fix belongs, and what it is."""

from typing import TYPE_CHECKING, Annotated

import typer

from selfhost.cli._context import Invocation, invocation
from selfhost.cli._options import Json
from selfhost.core.errors import InputError
from selfhost.shapes.exit import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from selfhost.cli._doctor_cluster import Meant
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
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[pod/NAME] [DIR|-]",
        help="An object of a cluster: pod/NAME, deployment/NAME, a deployment's name. Where --fix-script writes, - for "
        "stdout.",
        show_default=False,
    ),
]
KubeContext = Annotated[
    str | None,
    typer.Option("--kube-context", metavar="CONTEXT", help="Ask this cluster, not the machine.", show_default=False),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Of the cluster; else that of the context.", show_default=False),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace scripts that selfhost did not write.")]
Prove = Annotated[bool, typer.Option("--prove", help="Open the cards in a throw-away container, for each engine.")]


def command(
    context: typer.Context,
    words: Words = None,
    host: On = None,
    inside: Inside = None,
    kube_context: KubeContext = None,
    namespace: Namespace = None,
    fix_script: FixScript = False,
    overwrite: Overwrite = False,
    prove: Prove = False,
    json: Json = False,
) -> ExitCode:
    """What keeps a card from being used here or a pod from running, where to mend it, and how. Changes nothing."""
    from selfhost.cli._doctor import document, lines, summary
    from selfhost.cli._doctor_look import look_at
    from selfhost.shapes.finding import Report

    at_work = invocation(context)
    folder, meant = _meant(at_work, words or [], host, kube_context, namespace, fix_script=fix_script)
    _check(folder, inside=inside, host=host, fix_script=fix_script, prove=prove, json=json)
    _check_cluster(meant, inside=inside, prove=prove)
    looked = look_at(at_work, host=host, inside=inside, meant=meant)
    examination, comparison = looked.examination, looked.comparison
    proofs = _proven(at_work.system, looked.machine) if prove else ()
    findings = (*examination.report.findings, *(comparison.findings if comparison else ()))
    written = _write(at_work, findings, folder or ".", overwrite=overwrite) if fix_script else ()
    if json:
        at_work.console.json(document(looked, findings, proofs, written))
    elif folder != "-":
        at_work.console.result("\n".join([*looked.head, *lines(at_work.console, examination, comparison, proofs)]))
        at_work.console.note(f"\n{summary(findings, written)}")
    if any(proof.outcome == "bad" for proof in proofs):
        return ExitCode.NO
    return ExitCode.UNDECIDED if looked.undecided else Report.of(findings).exit_code


def _meant(
    at_work: Invocation, words: "list[str]", host: str | None, context: str | None, namespace: str | None, *,
    fix_script: bool,
) -> "tuple[str | None, Meant]":  # fmt: skip
    """A bare name is a deployment where a cluster is asked about, or where `up` recorded one of ours in a cluster."""
    from selfhost.cli._doctor_cluster import Meant, ours, split

    asked = context is not None or namespace is not None or host is not None
    folder, target = split(words, fix_script=fix_script, cluster=asked)
    own = None if asked or fix_script or target else ours(at_work, folder)
    if own is None:
        return folder, Meant(target=target, context=context, namespace=namespace, host=host)
    return None, Meant(target=f"deployment/{own.deployment}", context=own.context, namespace=own.namespace)


def _check_cluster(meant: "Meant", *, inside: str | None, prove: bool) -> None:
    if meant.named and (inside is not None or prove):
        what = f"--inside {inside}" if inside is not None else "containers (--prove)"
        raise InputError(
            f"doctor cannot look into {what} and a cluster at once",
            why="One is a container, the other what an API server says.",
            fix=("look at the pod's inside on its own:\nselfhost doctor --inside pod/NAME",),
            id="CF119",
        )


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


def _proven(system: "System", machine: "Host | None") -> "tuple[Proof, ...]":
    from selfhost.doctor.prove import prove

    return prove(system, machine) if machine is not None else ()


def _write(at_work: Invocation, findings: "Sequence[Finding]", folder: str, *, overwrite: bool) -> tuple[str, ...]:
    """Paths written. `-` prints them all."""
    from selfhost.cli._doctor import write
    from selfhost.doctor.fix_script import scripts

    texts = scripts(findings)
    if folder == "-":
        at_work.console.result("\n".join(f"# ---- {name}\n{text}" for name, text in texts.items()).rstrip("\n"))
        return ()
    return write(texts, folder, overwrite=overwrite)
