"""Which services a command is about: one from its options, or those of a selfhost.yaml."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from selfhost.cli._context import Invocation
from selfhost.cli._service import Asked, service_of
from selfhost.core.errors import InputError
from selfhost.shapes.service import Service

if TYPE_CHECKING:
    from selfhost.stack.entry import Entry

FILE = "selfhost.yaml"
NEITHER = "CF099"
_ALONE = ("name", "port", "image")
"""Options that can be about one service only."""


def services_of(asked: Asked, at_work: Invocation, *, verb: str, file: str | None) -> list[Service]:
    """Services in the file's order. With a file, MODEL is the name of one of them. Raises InputError.

    Without `--file`, ./selfhost.yaml counts where no MODEL is named, and for a MODEL that is one of its services.
    """
    if file is None and not (Path(FILE).is_file() and (asked.model is None or _in_here(asked.model))):
        return [service_of(asked, at_work, verb=verb)]
    from selfhost.cli._stack_file import stack_of
    from selfhost.plan.typed_over import over
    from selfhost.stack.find import select

    path = file or FILE
    stack = stack_of(path)
    chosen = list(select(stack, [asked.model] if asked.model else []))
    typed = service_of(replace(asked, model=None), at_work, verb=verb)
    if len(chosen) > 1:
        _refuse_alone(typed, path, chosen)
    return [over(service, typed) for service in chosen]


def _in_here(model: str) -> bool:
    """Whether ./selfhost.yaml has a service of this name; a broken file that may have one is told about."""
    from selfhost.cli._stack_file import stack_of

    try:
        known = [service.name for service in stack_of(FILE).services]
        if model not in known:
            _refuse_misspelled(model, known)
    except InputError as error:
        if error.id == NEITHER:
            raise
        try:
            return re.search(rf"(?m)^\s+{re.escape(model)}\s*:", Path(FILE).read_text("utf-8", "replace")) is not None
        except OSError:
            return False
    return model in known


def _refuse_misspelled(word: str, known: Sequence[str]) -> None:
    """Raises InputError for a word that is no model either, and nearly a service."""
    from selfhost.models import catalog
    from selfhost.stack.words import nearest

    near = nearest(word, known)
    if not near or "/" in word or catalog.by_alias(word) is not None or Path(word).exists():
        return
    raise InputError(
        f"`{word}` is neither a service of {FILE} nor a model that selfhost knows",
        fix=(
            f"perhaps {' or '.join(f'`{one}`' for one in (*near, *catalog.nearest(word)))}",
            "see all names of models:\nselfhost models",
        ),
        id=NEITHER,
    )


def with_neighbours(services: list[Service]) -> list[Service]:
    """These and the others of their file, which will run beside them."""
    from selfhost.cli._stack_file import stack_of
    from selfhost.plan.command_line import in_file

    path = in_file(services[0])
    if not path:
        return services
    chosen = {service.origins["service"]: service for service in services}
    return [chosen.get(one.origins["service"], one) for one in stack_of(path).services]


def _refuse_alone(typed: Service, path: str, chosen: list[Service]) -> None:
    for option in _ALONE:
        if option in typed.origins:
            raise InputError(
                f"--{option} is about one service; {path} has {len(chosen)}",
                fix=(f"name the one that is meant: {', '.join(service.name for service in chosen)}",),
                id="CF076",
            )


def with_locks(
    services: list[Service], *, locked: bool
) -> Iterator[tuple[Service, "Entry | None"]]:  # fmt: skip
    """Each service, with `locked` pinned to its entry of the lock beside the file."""
    if not locked:
        yield from ((service, None) for service in services)
        return
    from selfhost.plan.command_line import in_file

    if not in_file(services[0]):
        raise InputError(
            f"--locked is about services of a selfhost.yaml, and `{services[0].model or 'the best model'}` is none",
            why="A selfhost.lock has what was started from the file beside it.",
            fix=("name the file that the lock belongs to:\nselfhost up --locked --file selfhost.yaml",),
            id="CF079",
        )
    from selfhost.deploy.lockfile import read_lock
    from selfhost.stack.find import LOCK
    from selfhost.stack.locked import entry_of, pinned

    path = Path(in_file(services[0])).with_name(LOCK)
    entries = read_lock(path)
    for service in services:
        entry = entry_of(entries, service.name, path=str(path))
        yield pinned(service, entry), entry
