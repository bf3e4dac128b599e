"""Which services a command is about: one from its options, or those of a selfhost.yaml."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from selfhost.cli._context import Invocation
from selfhost.cli._service import Asked, service_of
from selfhost.core.errors import InputError
from selfhost.shapes.service import Service

if TYPE_CHECKING:
    from selfhost.stack.entry import Entry

FILE = "selfhost.yaml"
_ALONE = ("name", "port", "image")
"""Options that can be about one service only."""


def services_of(asked: Asked, at_work: Invocation, *, verb: str, file: str | None) -> list[Service]:
    """Services in the file's order. With a file, MODEL is the name of one of them. Raises InputError."""
    if file is None and (asked.model is not None or not Path(FILE).is_file()):
        return [service_of(asked, at_work, verb=verb)]
    from selfhost.cli._stack_file import stack_of
    from selfhost.stack.find import select

    path = file or FILE
    stack = stack_of(path)
    chosen = list(select(stack, [asked.model] if asked.model else []))
    typed = service_of(replace(asked, model=None), at_work, verb=verb)
    if len(chosen) > 1:
        _refuse_alone(typed, path, chosen)
    return [_over(service, typed) for service in chosen]


def _refuse_alone(typed: Service, path: str, chosen: list[Service]) -> None:
    for option in _ALONE:
        if option in typed.origins:
            raise InputError(
                f"--{option} is about one service; {path} has {len(chosen)}",
                fix=(f"name the one that is meant: {', '.join(service.name for service in chosen)}",),
                id="CF076",
            )


def _over(service: Service, typed: Service) -> Service:
    """What was typed replaces what the file says."""
    said = {field.name: getattr(typed, field.name) for field in fields(Service) if field.name in typed.origins}
    return replace(
        service,
        **said,
        engine_args=(*service.engine_args, *typed.engine_args),
        trust_remote_code=service.trust_remote_code or typed.trust_remote_code,
        allow_pickle=service.allow_pickle or typed.allow_pickle,
        origins={**service.origins, **typed.origins},
    )


def with_locks(
    services: list[Service], *, file: str | None, locked: bool
) -> Iterator[tuple[Service, "Entry | None"]]:  # fmt: skip
    """Each service, with `locked` pinned to its entry of the lock beside the file."""
    if not locked:
        yield from ((service, None) for service in services)
        return
    from selfhost.deploy.lockfile import read_lock
    from selfhost.stack.find import LOCK
    from selfhost.stack.locked import entry_of, pinned

    path = Path(file or FILE).with_name(LOCK)
    entries = read_lock(path)
    for service in services:
        entry = entry_of(entries, service.name, path=str(path))
        yield pinned(service, entry), entry
