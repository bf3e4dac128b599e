"""selfhost.yaml from the disk."""

import os
from dataclasses import replace
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.stack.find import required
from selfhost.stack.load import LARGEST_BYTES, Stack, decoded, load


def here() -> list[str]:
    """The names in this folder; none where it cannot be listed."""
    try:
        return os.listdir()  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def stack_of(file: str | None) -> Stack:
    """The stack of `file`, or of ./selfhost.yaml. Raises InputError."""
    return read_stack(required(file, here=here()))


def read_stack(path: str) -> Stack:
    """Raises InputError for a file that cannot be read, and with everything that is wrong in it."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        words = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"there is no {path}" if missing else f"{path} cannot be read: {words}",
            fix=("name it with -f FILE, or write one for this machine:\nselfhost init",),
            id="CF019",
        ) from None
    return _known_anywhere(load(decoded(data, path=path), path=path))


def _known_anywhere(stack: Stack) -> Stack:
    """By the file's whole path: a deployment is started again from other folders too."""
    whole = str(Path(stack.path).absolute())
    told = [one.origins["service"].removeprefix(stack.path) for one in stack.services]
    return replace(
        stack,
        services=tuple(
            replace(one, origins={**one.origins, "service": f"{whole}{rest}"})
            for one, rest in zip(stack.services, told, strict=True)
        ),
    )
