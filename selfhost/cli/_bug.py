"""Our own faults: the trace goes into a file, a person gets a sentence and what to send."""

import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import selfhost
from selfhost.cli._context import Invocation
from selfhost.core.errors import SelfhostError
from selfhost.core.files import write_atomic
from selfhost.shapes.exit import ExitCode


class Bug(SelfhostError):
    """Something we did not think of."""

    exit_code = ExitCode.BUG


def report(bug: Exception, *, at_work: Invocation, argv: Sequence[str]) -> Bug:
    """Keep the trace and return the error that says where it is. With SELFHOST_DEBUG=1 the trace is printed too."""
    at_work.close()
    trace = "".join(traceback.format_exception(bug))
    where = _keep(_page(trace, argv), at_work=at_work)
    if at_work.env.get("SELFHOST_DEBUG") == "1" or isinstance(where, str):
        at_work.console.trace(trace)
    why = (
        f"The trace could not be kept ({where}); it is printed above."
        if isinstance(where, str)
        else f"The full trace is in {_short(where, at_work.env.get('HOME', ''))}"
    )
    send = "report it with that trace and with what this prints about the machine:\nselfhost detect --json"
    return Bug(f"selfhost has a bug: {_name(bug)}", why=why, fix=(send,))


def _keep(page: str, *, at_work: Invocation) -> Path | str:
    """Where the page is, or why it could not be written."""
    page = page.encode(errors="backslashreplace").decode()  # argv may hold bytes that are no text
    try:
        path = at_work.paths.traces / f"{time.strftime('%Y-%m-%dT%H-%M-%S')}.log"
        write_atomic(path, page)
    except OSError as refused:
        return refused.strerror or str(refused)
    except SelfhostError as homeless:
        return homeless.what
    return path


def _page(trace: str, argv: Sequence[str]) -> str:
    own = list(argv)
    if "--" in own:  # what is passed on to an engine may hold a key
        own = [*own[: own.index("--")], "--", "…"]
    return f"selfhost {selfhost.__version__} on Python {sys.version.split()[0]}\nselfhost {' '.join(own)}\n\n{trace}"


def _name(bug: Exception) -> str:
    return f"{type(bug).__name__} {bug}".strip()


def _short(path: Path, home: str) -> str:
    return str(path).replace(home, "~", 1) if home and path.is_relative_to(home) else str(path)
