"""What an error proposes, as this command: who asked `fit` about a card does not want an engine started here."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from selfhost.core.errors import SelfhostError
from selfhost.shapes.exit import ExitCode

_NOT_OF_FIT = ("--trust-remote-code", "--allow-pickle", "--reasoning", "--kv-skip-layers", "--name", "--port")
WORST = (ExitCode.OK, ExitCode.UNDECIDED, ExitCode.NO)
"""From best to worst, for a command about several services."""
_MACHINES = ("--gpu", "--host")


@contextmanager
def proposing(verb: str, place: Sequence[str]) -> Iterator[None]:
    """Errors raised within the block propose `selfhost VERB` about `place` where they had `selfhost up`."""
    try:
        yield
    except SelfhostError as error:
        error.fix = tuple("\n".join(_line(text, verb, place) for text in action.split("\n")) for action in error.fix)
        raise


def _line(text: str, verb: str, place: Sequence[str]) -> str:
    if not text.startswith(("selfhost up ", f"selfhost {verb} ")) or "MODEL" in text:
        return text
    command, dashes, passed_on = text.partition(" -- ")
    words = shlex.split(command)
    mine = ["selfhost", *verb.split()]
    rest = words[len(mine) :] if words[: len(mine)] == mine else words[2:]
    if any(word in _MACHINES for word in words) or (verb == "fit" and any(word in _NOT_OF_FIT for word in words)):
        return text
    about = () if place[:1] == ("--gpu",) and "cpu" in words else place  # the processor is this machine's
    return shlex.join([*mine, *rest, *about]) + dashes + passed_on
