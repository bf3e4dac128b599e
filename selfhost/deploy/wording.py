"""Names of this run in texts that were written without knowing it."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from selfhost.core.errors import SelfhostError
from selfhost.shapes.service import Service


def filled(actions: Sequence[str], *, model: str, name: str) -> tuple[str, ...]:
    """The actions with MODEL and NAME replaced where they stand as arguments of a selfhost or hf command."""

    def line(text: str) -> str:
        if not text.startswith(("selfhost ", "hf ")):
            return text
        words = re.sub(r"\bNAME\b", lambda _: shlex.quote(name) if name else "NAME", text)
        words = re.sub(r"\bMODEL\b", lambda _: shlex.quote(model) if model else "", words)
        return re.sub(r" {2,}", " ", words).strip()

    return tuple("\n".join(line(text) for text in action.split("\n")) for action in actions)


@contextmanager
def naming(service: Service) -> Iterator[None]:
    """Errors raised within the block get this run's model and name into their actions."""
    try:
        yield
    except SelfhostError as error:
        error.fix = filled(error.fix, model=service.model, name=service.name)
        raise


def look_at(where: object) -> str:
    """The command that shows a file, ready to paste; a command is one already."""
    text = str(where)
    return text if " " in text and not text.startswith("/") else f"less {shlex.quote(text)}"
