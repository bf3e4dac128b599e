"""Names of this run in texts that were written without knowing it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from selfhost.core.errors import SelfhostError


def filled(actions: Sequence[str], *, model: str, name: str) -> tuple[str, ...]:
    """The actions with MODEL and NAME replaced where they stand as arguments of a selfhost or hf command."""

    def line(text: str) -> str:
        if not text.startswith(("selfhost ", "hf ")):
            return text
        return re.sub(r"\bNAME\b", lambda _: name, re.sub(r"\bMODEL\b", lambda _: model, text))

    return tuple("\n".join(line(text) for text in action.split("\n")) for action in actions)


@contextmanager
def naming(*, model: str, name: str) -> Iterator[None]:
    """Errors raised within the block get this run's names into their actions."""
    try:
        yield
    except SelfhostError as error:
        error.fix = filled(error.fix, model=model, name=name)
        raise
