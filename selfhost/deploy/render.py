"""Rendered files on the disk: new ones replace our own, and what a person edited is kept beside them."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path

from selfhost.core.files import write_atomic
from selfhost.deploy.run import Run


def write_bundle(run: Run) -> tuple[str, bool]:
    """Render and write; returns the words for the step, and whether every file was as it should be already."""
    from selfhost.render.process import render  # at use: Jinja

    if run.environment is None:
        raise ValueError("render before fetch")
    bundle = render(
        run.plan,
        python=run.environment.python,
        key_file=str(run.state.key_file),
        folder=str(run.state.bundle),
    )
    run.bundle = bundle
    changed = [path for path, text in bundle.files.items() if _differs(run.state.bundle / path, text)]
    if not changed:
        return f"{len(bundle.files)} files", True
    known = run.state.lock().get("bundle_files")
    sums: dict[str, list[str]] = {path: list(kept) for path, kept in known.items()} if isinstance(known, dict) else {}
    for path in bundle.files:  # the sum first: a kill between the two must not make our own file look like the user's
        sums[path] = [*sums.get(path, [])[-4:], _sum(bundle.files[path])]
    run.state.write_lock(bundle=bundle.digest, bundle_files=sums)
    for path in changed:
        _write_one(run, path, bundle.files[path], ours=sums)
    return f"{len(bundle.files)} files · {_short(run.state.bundle, run.work.env)}", False


def _short(path: Path, env: Mapping[str, str]) -> str:
    """A path below the home folder as a person writes it."""
    home = env.get("HOME", "")
    return f"~/{path.relative_to(home)}" if home and path.is_relative_to(home) else str(path)


def _write_one(run: Run, path: str, text: str, *, ours: Mapping[str, list[str]]) -> None:
    target = run.state.bundle / path
    if target.exists() and _sum(target.read_text(encoding="utf-8", errors="replace")) not in ours.get(path, []):
        kept = target.with_name(f"{target.name}.edited-{time.strftime('%Y-%m-%dT%H-%M-%S')}")
        target.rename(kept)
        run.tell("render", "warning", f"{path} was edited by hand; your version is kept as {kept}")
    executable = run.bundle is not None and path in run.bundle.executable
    write_atomic(target, text, mode=0o700 if executable else 0o600)


def _differs(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except (FileNotFoundError, UnicodeDecodeError):
        return True


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
