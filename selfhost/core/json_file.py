"""Our own JSON files: damage is set aside and reported, and what a newer selfhost wrote is left alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selfhost.core.files import set_aside
from selfhost.shapes.finding import Finding, Place, Severity

T = TypeVar("T")


def read_json(
    path: Path, parse: Callable[[dict[str, Any]], T], *, schema: str, id: str, title: str
) -> tuple[T | None, tuple[Finding, ...]]:
    """What `parse` makes of the JSON object in `path`; None, with a finding that says why, when it can't be used.

    A missing file is no news. `parse` raises ValueError, KeyError or TypeError for what is none of ours. `schema` is
    the form that this version knows (`selfhost.plan/1`); `id` and `title` are those of the finding for damage. That and
    an unreadable file are warnings, a file of a newer version is an error.
    """
    try:
        raw = _object(path)
        if _is_newer(str(raw["schema"]), schema):
            return None, (_newer(path, str(raw["schema"])),)
        if raw["schema"] != schema:
            raise ValueError(f"its schema is {raw['schema']}, not {schema}")  # noqa: TRY301 - one kind of damage
        return parse(raw), ()
    except FileNotFoundError:
        return None, ()
    except OSError as error:
        return None, (_unreadable(path, error),)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        words = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        return None, (_damaged(path, words, id=id, title=title),)


def _object(path: Path) -> dict[str, Any]:
    raw = json.loads(path.read_bytes())
    if not isinstance(raw, dict):
        raise ValueError("it holds no JSON object")  # noqa: TRY004 - what the file holds is damage like any other
    return raw


def _is_newer(found: str, known: str) -> bool:
    kind, _, number = known.rpartition("/")
    asked = found.removeprefix(f"{kind}/")
    return found.startswith(f"{kind}/") and asked.isdecimal() and int(asked) > int(number)


def _newer(path: Path, schema: str) -> Finding:
    return Finding(
        id="RT022",
        severity=Severity.ERROR,
        title=f"{path} was written by a newer selfhost (schema {schema})",
        place=Place(path=str(path)),
        why="This version does not know that form and leaves the file as it is.",
        fix=("upgrade selfhost in this environment, then run the command again",),
    )


def _damaged(path: Path, evidence: str, *, id: str, title: str) -> Finding:
    try:
        kept, then = set_aside(path), "It was set aside, and is made again when it is needed."
    except OSError:  # another command set it aside just now, or the disk is read-only
        kept, then = path, "It could not be set aside, and is not used."
    return Finding(
        id=id,
        severity=Severity.WARNING,
        title=title,
        place=Place(path=str(kept)),
        evidence=evidence.splitlines()[0][:200] if evidence else "",
        why=f"selfhost writes it whole or not at all: something else, or a version of another form, wrote it. {then}",
        fix=(f"nothing to do; to look at it:\nless {kept}",),
    )


def _unreadable(path: Path, error: OSError) -> Finding:
    return Finding(
        id="RT052",
        severity=Severity.WARNING,
        title=f"{path} cannot be read",
        place=Place(path=str(path)),
        evidence=error.strerror or str(error),
        why="It belongs to another user, or its disk does not answer.",
        fix=(f"look at it:\nls -l {path}",),
    )
