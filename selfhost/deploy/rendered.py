"""`render`: the files of a service in a folder of the user's, for this machine or for another one. Starts nothing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.core.files import write_atomic
from selfhost.core.secret import ensure_key
from selfhost.deploy.bundle import changed_lines, differs, set_beside, sum_of, text_of, texts_of, with_sum
from selfhost.deploy.gather import Gathered, plan_for
from selfhost.deploy.gather_cluster import plan_in
from selfhost.deploy.workplace import Workplace
from selfhost.engines.base import engine
from selfhost.plan.command_line import command_line
from selfhost.plan.engine import KUBERNETES
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.finding import Finding
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Origin
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service
from selfhost.stack.entry import Entry

RUNTIMES = {
    "compose": "docker", "docker": "docker", "podman": "podman", "quadlet": "quadlet", "process": "process",
    "helm": "kubernetes", "kubernetes": "kubernetes",
}  # fmt: skip
"""For which runtime a target's plan is made."""
SUMS = ".selfhost.json"
"""What we wrote, so that an edited file is known as one."""
IGNORE = ".gitignore"
SECRETS = ("engine.env", "key", "key.header")
ELSEWHERE = "/var/lib/selfhost/models"
"""Where weights are expected on a machine that nobody looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """One service as files. `states` by path: `unchanged`, `written`, `missing`, `differs`."""

    plan: Plan
    service: Service
    target: str
    bundle: Bundle
    folder: str
    findings: tuple[Finding, ...]
    states: Mapping[str, str]
    diff: str = ""

    @property
    def same(self) -> bool:
        return all(state == "unchanged" for state in self.states.values())


def plan_of(
    work: Workplace, service: Service, *, target: str, host: Host | None, model_folder: str | None
) -> Gathered:  # fmt: skip
    """The plan for `target`, with the weights where they are or will be."""
    wish = replace(service, runtime=RUNTIMES[target])
    if RUNTIMES[target] == KUBERNETES:
        return plan_in(work, wish, host=host, live="kube_context" in wish.origins)
    found = plan_for(work, wish, host=host)
    where = model_folder or _weights(found, elsewhere=host is not None)
    if where == found.model.path:
        return found
    from selfhost.plan.decide import decide_all

    model = replace(found.model, path=where)
    decided = decide_all(
        host=found.host, model=model, service=found.service, port=found.plan.port, build=found.plan.build
    )
    return replace(found, model=model, decided=decided)


def check_against(found: Gathered, entry: Entry) -> None:
    """Raises InputError where the plan is for something else than was locked. Files are another way to the same."""
    from selfhost.deploy.lockfile import lock_of
    from selfhost.stack.locked import check_locked

    now = lock_of(found.plan, found.host)
    check_locked(replace(entry, runtime=now.runtime), now, name=found.service.name)


def _weights(found: Gathered, *, elsewhere: bool) -> str:
    model = found.model
    if model.path:
        return model.path
    slug = model.id.replace("/", "--")
    if elsewhere:
        return f"{ELSEWHERE}/{slug}"
    if isinstance(model.revision, Known) and model.origin is Origin.HUB:
        return f"{found.hub.cache_folder}/models--{slug}/snapshots/{model.revision.value}"
    return f"{found.hub.cache_folder}/{slug}"


def rendered(found: Gathered, *, target: str, folder: Path, bare: bool, python: str) -> Rendered:
    """The files as text, read back and judged; nothing is written."""
    from selfhost.deploy.read_back import read_bundle
    from selfhost.render.targets import render
    from selfhost.visibility.lint import lint

    plan = found.plan
    takes_key = bool(engine(plan.build.engine).KEY_VARIABLE)
    place = Place(
        folder=str(folder),
        key_file=str(folder / "key") if plan.cluster is None else "",
        env_file=str(folder / "engine.env") if takes_key and plan.container is not None else "",
        python=python,
    )
    bundle = render(target, plan, place, bare=bare)
    theirs = {path: text for path, text in _there(folder).items() if path.startswith("overrides/")}
    files = {**bundle.files, **theirs}
    findings = list(lint(read_bundle(target, files, folder=str(folder)), found.host))
    if plan.cluster is not None:
        findings += _of_objects(target, files, folder=folder, host=found.host)
    states = {path: _state(folder / path, text) for path, text in bundle.files.items()}
    return Rendered(
        plan=plan,
        service=found.service,
        target=target,
        bundle=bundle,
        folder=str(folder),
        findings=tuple(findings),
        states=states,
        diff=_diff(bundle, folder, states),
    )


def _of_objects(target: str, files: Mapping[str, str], *, folder: Path, host: Host) -> tuple[Finding, ...]:
    from selfhost.deploy.read_back import manifests_in
    from selfhost.visibility.files import NO_FILES
    from selfhost.visibility.lint import lint_objects
    from selfhost.visibility.objects import Manifests
    from selfhost.visibility.sources import objects_in

    path, text = manifests_in(target, files, folder=str(folder))
    found = lint_objects(Manifests.of(objects_in(text, path=path, files=NO_FILES)), host)
    if target == "kubernetes":
        return found
    return tuple(replace(one, place=replace(one.place, line=None)) for one in found)  # values have other lines


def _there(folder: Path) -> Mapping[str, str]:
    return texts_of(folder) if folder.is_dir() else {}


def _state(path: Path, text: str) -> str:
    if not differs(path, text):
        return "unchanged"
    return "differs" if path.exists() else "missing"


def _diff(bundle: Bundle, folder: Path, states: Mapping[str, str]) -> str:
    if all(state == "unchanged" for state in states.values()):
        return ""
    from selfhost.render.check import differences

    on_disk = {path: text_of(folder / path) for path in bundle.files}
    return "\n".join(one.diff for one in differences(bundle, on_disk))


def write(made: Rendered, *, overwrite: bool) -> Rendered:
    """Write what is new or changed, and the key's files when there are none.

    Raises InputError with the differences for a file that a person edited, unless `overwrite`.
    """
    folder = Path(made.folder)
    sums = _sums(folder)
    changed = [path for path, state in made.states.items() if state != "unchanged"]
    edited = [path for path in changed if _is_edited(folder / path, sums.get(path, []))]
    if edited and not overwrite:
        raise _by_hand(made, edited)
    folder.mkdir(parents=True, exist_ok=True)
    texts = made.bundle.files
    kept = {path: with_sum(sums.get(path, []), texts[path]) for path in texts}
    known = json.dumps({"schema": "selfhost.bundle/1", "files": {**sums, **kept}}, indent=1) + "\n"
    if differs(folder / SUMS, known):
        write_atomic(folder / SUMS, known)
    for path in changed:
        if path in edited:
            set_beside(folder / path)
        write_atomic(folder / path, texts[path], mode=0o755 if path in made.bundle.executable else 0o644)
    _secrets(made, folder)
    return replace(made, states={path: "written" if path in changed else "unchanged" for path in texts})


def _is_edited(path: Path, ours: list[str]) -> bool:
    text = text_of(path)
    return text is not None and sum_of(text) not in ours


def _sums(folder: Path) -> dict[str, list[str]]:
    text = text_of(folder / SUMS)
    try:
        known = json.loads(text)["files"] if text else {}
    except (ValueError, KeyError, TypeError):  # edited too: then every file counts as the user's
        return {}
    return {path: [str(one) for one in found] for path, found in known.items() if isinstance(found, list)}


def _secrets(made: Rendered, folder: Path) -> None:
    """A key of this folder's own, kept out of git; one that is there stays."""
    variable = engine(made.plan.build.engine).KEY_VARIABLE
    if not variable:
        return
    if made.plan.cluster is not None:  # a Secret of the cluster, one for everybody: the README says how it is made
        _ignore(folder)
        return
    key = ensure_key(folder / "key")
    if made.plan.container is not None and text_of(folder / "engine.env") is None:
        write_atomic(folder / "engine.env", f"{variable}={key}\n")
    _ignore(folder)


def _ignore(folder: Path) -> None:
    if text_of(folder / IGNORE) is None:
        write_atomic(folder / IGNORE, "".join(f"{name}\n" for name in SECRETS), mode=0o644)


def _by_hand(made: Rendered, edited: list[str]) -> InputError:
    again = command_line(f"render {made.target}", made.service, "-o", made.folder, "--overwrite")
    return InputError(
        f"{', '.join(edited)} in {made.folder} {'was' if len(edited) == 1 else 'were'} not written by selfhost as "
        f"{'it is' if len(edited) == 1 else 'they are'} now",
        why="A file that somebody edited is never written over unless asked.",
        evidence="\n".join(changed_lines(made.diff)),
        fix=(
            f"put changes into files that selfhost reads and never writes:\nmkdir -p {made.folder}/overrides",
            "or write them anew; your versions are kept beside them:\n" + again,
        ),
        id="RT031",
    )
