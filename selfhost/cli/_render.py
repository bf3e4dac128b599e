"""What `render` does with each service, and how it is shown."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfhost.core.console import Console
from selfhost.core.errors import InputError
from selfhost.deploy.rendered import RUNTIMES, Rendered, check_against, plan_of, rendered, write
from selfhost.deploy.workplace import Workplace
from selfhost.fetch import venv
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.service import Service

if TYPE_CHECKING:
    from selfhost.shapes.plan import Plan
    from selfhost.stack.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of `render`. Without `output` the main file goes to stdout."""

    target: str
    output: Path | None
    check: bool
    bare: bool
    overwrite: bool
    model_dir: str | None


def target_of(word: str) -> str:
    """Raises InputError with the nearest target."""
    if word in RUNTIMES:
        return word
    near = difflib.get_close_matches(word, RUNTIMES, n=1, cutoff=0.6)
    raise InputError(
        f"there is no target `{word}`",
        why=f"Known are {', '.join(RUNTIMES)}.",
        fix=(f"perhaps:\nselfhost render {near[0] if near else 'compose'} MODEL",),
        id="CF077",
    )


def refuse_without_folder(wish: Wish) -> None:
    """Raises InputError for a check of nothing."""
    if wish.check and wish.output is None:
        raise InputError(
            "--check needs the folder that is to be compared",
            fix=(f"name it:\nselfhost render {wish.target} MODEL --check -o DIR",),
            id="CF078",
        )


def is_for_cluster(wish: Wish) -> bool:
    return RUNTIMES[wish.target] == "kubernetes"


def refuse_no_cluster(wish: Wish, kube_context: str | None, namespace: str | None) -> None:
    """Raises InputError for options about a cluster with files that are for none."""
    given = "--kube-context" if kube_context is not None else "--namespace" if namespace is not None else ""
    if given and not is_for_cluster(wish):
        raise InputError(
            f"`{given}` is about a cluster, and {wish.target} is not",
            fix=("render for a cluster:\nselfhost render helm MODEL", f"or leave {given} out"),
            id="CF110",
        )


def make(
    work: Workplace, service: Service, *, wish: Wish, host: Host | None, several: bool, locked: "Entry | None" = None
) -> Rendered:
    """One service as files, in a folder of its own among `several`; written unless they are only shown or checked."""
    found = plan_of(work, service, target=wish.target, host=host, model_folder=wish.model_dir)
    if locked is not None:
        check_against(found, locked)
    folder = wish.output or Path.cwd()
    if wish.output is not None and several:
        folder = wish.output / found.plan.name
    python = str(venv.folder_of(found.plan.build, paths=work.paths) / "bin" / "python")
    one = rendered(found, target=wish.target, folder=folder, bare=wish.bare, python=python)
    return write(one, overwrite=wish.overwrite) if wish.output is not None and not wish.check else one


def show(made: Sequence[Rendered], *, wish: Wish, console: Console, json: bool) -> ExitCode:
    errors = any(finding.severity is Severity.ERROR for one in made for finding in one.findings)
    no = errors or (wish.check and not all(one.same for one in made))
    if json:
        console.json(_json(made, wish=wish, ok=not no))
        return ExitCode.NO if no else ExitCode.OK
    for one in made:
        for finding in one.findings:
            console.finding(finding)
        _show_one(one, wish=wish, console=console)
    return ExitCode.NO if no else ExitCode.OK


def _show_one(one: Rendered, *, wish: Wish, console: Console) -> None:
    if wish.output is None:
        first = next(iter(one.bundle.files))
        console.result(one.bundle.files[first].rstrip("\n"))
        others = [path for path in one.bundle.files if path != first]
        if others:
            console.note(f"  → with -o DIR also {', '.join(others)}")
        return
    if wish.check and not one.same:
        console.result(one.diff)
    for path, state in one.states.items():
        console.result(f"{state:<10}{Path(one.folder) / path}")
    if not wish.check:
        for words in _unpinned(one.plan):
            console.note(f"  – {words}")
        console.note(f"  → how to start it: {Path(one.folder) / 'README.txt'}")


def _unpinned(plan: "Plan") -> tuple[str, ...]:
    from selfhost.render.cluster_words import unpinned

    return unpinned(plan, plan.cluster) if plan.cluster is not None else ()


def _json(made: Sequence[Rendered], *, wish: Wish, ok: bool) -> dict[str, object]:
    return {
        "schema": "selfhost.rendered/1",
        "ok": ok,
        "target": wish.target,
        "services": [
            {
                "name": one.plan.name,
                "folder": one.folder if wish.output is not None else None,
                "digest": one.bundle.digest,
                "states": dict(one.states) if wish.output is not None else {},
                "files": dict(one.bundle.files),
                "findings": [finding.id for finding in one.findings],
                "diff": one.diff if wish.check else "",
            }
            for one in made
        ],
    }
