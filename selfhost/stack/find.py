"""Which file says what runs here, and which of its services are meant."""

from collections.abc import Sequence
from typing import Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.shapes.service import Service
from selfhost.stack.load import Stack
from selfhost.stack.words import nearest

NAME: Final = "selfhost.yaml"
LOCK: Final = "selfhost.lock"
OTHER_NAMES: Final = ("selfhost.yml", "selfhost.json")
"""Not taken by themselves; named where `selfhost.yaml` is missing."""


def file_of(asked: str | None, *, model: str | None, here: Sequence[str]) -> str | None:
    """The file to read: the one asked for, else `selfhost.yaml` of this folder when no model was named.

    `here` has the names in this folder. None: the command line alone says what is wanted.
    """
    if asked is not None:
        return asked
    return NAME if model is None and NAME in here else None


def required(asked: str | None, *, here: Sequence[str]) -> str:
    """As `file_of`, for commands that need one. Raises InputError."""
    found = file_of(asked, model=None, here=here)
    if found is not None:
        return found
    others = [name for name in OTHER_NAMES if name in here]
    raise InputError(
        f"there is no {NAME} in this folder",
        fix=(
            *(f"perhaps this one:\n-f {name}" for name in others),
            "name it with -f FILE, or write one for this machine:\nselfhost init",
        ),
        id="CF019",
    )


def select(stack: Stack, names: Sequence[str]) -> tuple[Service, ...]:
    """The services of these names, in the order of the file; all of them without names. Raises InputError."""
    known = [service.name for service in stack.services]
    unknown = [name for name in names if name not in known]
    if unknown:
        near = [match for name in unknown for match in nearest(name, known)]
        raise InputError(
            f"{stack.path} has no service {', '.join(f'`{name}`' for name in unknown)}",
            fix=(f"perhaps {' or '.join(f'`{name}`' for name in dict.fromkeys(near))}",)
            if near
            else (f"it has: {', '.join(known)}",),
            id="CF003",
            place=Place(path=stack.path),
        )
    return tuple(service for service in stack.services if not names or service.name in names)
