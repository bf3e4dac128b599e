"""The step `render`: the deployment's files on the disk, and what will run read back from them."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.core.files import write_atomic
from selfhost.deploy.bundle import changed_lines, differs, set_beside, sum_of, text_of, texts_of, with_sum
from selfhost.deploy.run import Run
from selfhost.plan.command_line import command_line
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.workload import Workload

TARGETS = {"process": "process", "docker": "compose", "podman": "podman", "quadlet": "quadlet", "kubernetes": "helm"}
"""Which files a runtime starts from."""


def write_bundle(run: Run) -> tuple[str, bool]:
    """Render and write; returns the words for the step, and whether every file was as it should be already.

    A file that a person edited stops here when a container would be started from it; of a process the edited copy is
    kept beside the new one, since the script is not what runs.
    """
    from selfhost.render.targets import render  # at use: Jinja

    target = TARGETS[run.plan.runtime]
    place = run.place(checked=_checked(run))
    run.bundle = render(target, run.plan, place)
    found = write_files(run)
    run.workload = read_back(run, target) if run.plan.container is not None else None
    return found


def write_files(run: Run) -> tuple[str, bool]:
    """Write what was rendered; returns as `write_bundle`."""
    bundle = run.bundle
    if bundle is None:
        raise ValueError("written before it was rendered")
    changed = [path for path, text in bundle.files.items() if differs(run.state.bundle / path, text)]
    if changed or _former(run, bundle):
        _write(run, bundle, changed)
    if not changed:
        return f"{len(bundle.files)} files", True
    return f"{len(bundle.files)} files · {short(run.state.bundle, run.work.env)}", False


def read_back(run: Run, target: str) -> Workload:
    """The container as the files and the user's overrides describe it. Raises InputError for a broken override."""
    from selfhost.deploy.read_back import read_bundle

    return read_bundle(target, texts_of(run.state.bundle), folder=str(run.state.bundle))


def write_checked(run: Run) -> str:
    """After a first checked start: the files say that it is started again by itself. Returns the restart policy."""
    if run.plan.container is None or run.plan.container.restart_checked == "no":
        return ""
    write_bundle(run)
    return run.workload.restart if run.workload is not None else ""


def _checked(run: Run) -> bool:
    checks = run.state.checks()
    return checks is not None and checks.exit_code == 0 and checks.plan_digest == run.digest


def _write(run: Run, bundle: Bundle, changed: list[str]) -> None:
    known = run.state.lock().get("bundle_files")
    sums: dict[str, list[str]] = {path: list(kept) for path, kept in known.items()} if isinstance(known, dict) else {}
    edited = [path for path in changed if _edited(run, path, ours=sums)]
    if edited and run.plan.runtime != "process" and not run.overwrite:
        raise _by_hand(run, bundle, edited)
    former = _former(run, bundle)
    for path in bundle.files:  # the sum first: a kill between the two must not make our own file look like the user's
        sums[path] = with_sum(sums.get(path, []), bundle.files[path])
    run.state.write_lock(bundle=bundle.digest, bundle_files=sums)
    for path in former:
        _take_away(run, path, ours=sums)
    run.state.write_lock(bundle_files={path: kept for path, kept in sums.items() if path not in former})
    for path in changed:
        if path in edited:
            kept = set_beside(run.state.bundle / path)
            run.tell("render", "warning", f"{path} was edited by hand; your version is kept as {kept}")
        write_atomic(run.state.bundle / path, bundle.files[path], mode=0o700 if path in bundle.executable else 0o600)


def _former(run: Run, bundle: Bundle) -> list[str]:
    """Files that an earlier plan had and this one has not, such as those of another runtime."""
    known = run.state.lock().get("bundle_files")
    return [path for path in known if path not in bundle.files] if isinstance(known, dict) else []


def _take_away(run: Run, path: str, *, ours: Mapping[str, list[str]]) -> None:
    """Who finds it would start a second engine with it."""
    if text_of(run.state.bundle / path) is None:
        return
    if _edited(run, path, ours=ours):
        kept = set_beside(run.state.bundle / path)
        run.tell("render", "warning", f"{path} is no longer started; what you edited is kept as {kept}")
    else:
        (run.state.bundle / path).unlink()


def _edited(run: Run, path: str, *, ours: Mapping[str, list[str]]) -> bool:
    text = text_of(run.state.bundle / path)
    return text is not None and sum_of(text) not in ours.get(path, [])


def _by_hand(run: Run, bundle: Bundle, edited: list[str]) -> InputError:
    from selfhost.render.check import differences

    found = differences(bundle, {path: text_of(run.state.bundle / path) for path in edited})
    diff = "\n".join(one.diff for one in found if one.path in edited)
    override = {
        "compose": "compose.override.yaml",
        "quadlet": f"{run.plan.name}.container.d/own.conf",
        "helm": "values.yaml",
    }
    place = override.get(TARGETS[run.plan.runtime])
    again = command_line("up", run.gathered.service, "--overwrite")
    fix = [f"or write it anew; your version is kept beside it:\n{again}"]
    if place:
        file = run.state.bundle / "overrides" / place
        own = f"mkdir -p {shlex.quote(str(file.parent))} && ${{EDITOR:-vi}} {shlex.quote(str(file))}"
        fix.insert(0, f"put the change where it stays, in a file that selfhost reads and never writes:\n{own}")
    return InputError(
        f"{', '.join(edited)} {'was' if len(edited) == 1 else 'were'} edited by hand; nothing was written or started",
        why="What was edited is what would run, and selfhost would write it anew.",
        evidence="\n".join(changed_lines(diff)),
        fix=fix,
        id="RT030",
    )


def short(path: Path, env: Mapping[str, str]) -> str:
    """A path below the home folder as a person writes it."""
    home = env.get("HOME", "")
    return f"~/{path.relative_to(home)}" if home and path.is_relative_to(home) else str(path)
