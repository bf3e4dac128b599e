"""The JUnit report's file: refused before anything runs where it can't be written, and never our own fault."""

import errno
import os
from pathlib import Path

from selfhost.core.errors import InputError


def check_place(path: Path) -> None:
    """Raises InputError for a place that can be seen to take no file."""
    if path.is_dir():
        raise _refused(path, "it is a folder")
    folder = path.absolute().parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise _refused(path, f"{folder} is not a folder")
    if not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise _refused(path, f"{folder} may not be written")


def write(path: Path, text: str) -> None:
    """Write the report whole, or into the device or pipe that `path` is. Raises InputError."""
    from selfhost.core.files import write_atomic

    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            place.write_text(text, encoding="utf-8")
        else:
            write_atomic(place, text, mode=0o644)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE):
            raise  # a full disk and a reader that left have words of their own
        raise _refused(path, error.strerror or str(error)) from None


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"the JUnit report can't be written to `{path}`",
        why=f"{why[:1].upper()}{why[1:]}.",
        fix=("name a file in a folder of yours:\nselfhost smoke --junit smoke.xml",),
        id="CF068",
    )
