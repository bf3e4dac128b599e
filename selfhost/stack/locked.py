"""Held against a lock: either it is the same, with remarks about the machine, or it is said exactly what is not."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.shapes.service import Service
from selfhost.stack.differences import Difference, Kind, differences
from selfhost.stack.entry import Entry
from selfhost.stack.words import nearest

DIFFERS: Final = "CF025"
_MOST_SHOWN: Final = 12
_COMMIT = re.compile(r"[0-9a-f]{40}")


def entry_of(entries: Mapping[str, Entry], name: str, *, path: str) -> Entry:
    """The entry of one service. Raises InputError with the nearest name."""
    found = entries.get(name)
    if found is not None:
        return found
    near = nearest(name, tuple(entries))
    raise InputError(
        f"{path} has no service `{name}`",
        why="Only what ran when the lock was written is in it.",
        fix=(
            *((f"perhaps {' or '.join(f'`{one}`' for one in near)}",) if near else ()),
            f"start it without --locked, then lock it:\nselfhost up --file selfhost.yaml {name}\nselfhost lock",
        ),
        id="CF026",
    )


def check_locked(entry: Entry, now: Entry, *, name: str) -> tuple[Difference, ...]:
    """The differences that may be, each with its reason.

    Raises InputError when something else is asked for than was locked, EnvironmentMissing when what was brought here
    is not what was locked. Values that `now` does not know yet (empty) wait for a later call.
    """
    found = differences(entry, now)
    serious = [one for one in found if one.serious]
    if not serious:
        return found
    asked = any(one.kind is Kind.ASKED for one in serious)
    kind = InputError if asked else EnvironmentMissing
    first = serious[0]
    count = (
        f"{len(serious)} things are not as locked, first the " if len(serious) > 1 else "this is not as locked: the "
    )
    raise kind(
        f"`{name}`: {count}{first}",
        why=first.why + ("" if len(serious) == 1 else " All of them are listed."),
        fix=(*_listed(serious[1:]), *_cures(asked=asked, name=name)),
        id=DIFFERS,
    )


def _listed(more: Sequence[Difference]) -> list[str]:
    shown = [f"also the {one}. {one.why}" for one in more[:_MOST_SHOWN]]
    rest = len(more) - len(shown)
    return [*shown, f"and {rest} more"] if rest else shown


def _cures(*, asked: bool, name: str) -> tuple[str, ...]:
    again = f"to take what is here as the new state:\nselfhost up --file selfhost.yaml {name}\nselfhost lock"
    if asked:
        return ("ask for what was locked, or leave --locked out", again)
    return ("bring what was locked here (a registry or a hub that still has it)", again)


def pinned(service: Service, entry: Entry) -> Service:
    """The same request, with what the lock knows: revision, version of the engine, digest of the image."""
    model = service.model.partition("@")[0]
    on_hub = _COMMIT.fullmatch(entry.revision) is not None
    image = entry.image
    return replace(
        service,
        model=f"{model}@{entry.revision}" if on_hub else service.model,
        engine=f"{entry.engine}@{entry.engine_version}" if entry.engine_version else service.engine,
        image=f"{image.reference.partition('@')[0]}@{image.digest}" if image and image.digest else service.image,
    )
