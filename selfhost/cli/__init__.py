"""From argv to an exit code: whatever was raised below ends in `run`, as words and a code."""

import os
import sys
from collections.abc import Sequence

from selfhost.cli._commands import as_json, help_text
from selfhost.cli._context import Invocation, invocation_of
from selfhost.core.errors import SelfhostError
from selfhost.core.signals import Terminated, raised
from selfhost.shapes.exit import ExitCode


def run(argv: Sequence[str]) -> int:
    """Run one command line. Every way out is an exit code; what went wrong was said on stderr."""
    at_work = invocation_of(argv)
    try:
        with raised():
            code = _dispatch(at_work, list(argv))
    except SelfhostError as error:
        code = _say(at_work, error)
    except KeyboardInterrupt:
        code = at_work.console.interrupted(ExitCode.INTERRUPTED)
    except Terminated:
        code = at_work.console.interrupted(ExitCode.TERMINATED)
    except BrokenPipeError:
        code = _reader_left()
    except Exception as bug:  # noqa: BLE001 - the one place where our own faults end
        from selfhost.cli._bug import report
        from selfhost.cli._refused import refused

        code = _say(at_work, refused(bug) or report(bug, at_work=at_work, argv=argv))
    finally:
        at_work.close()
    return code


def _dispatch(at_work: Invocation, argv: list[str]) -> int:
    match argv:
        case []:
            at_work.console.note(help_text())
            return ExitCode.INPUT
        case ["--help"] | ["help"]:
            at_work.console.result(help_text())
            return ExitCode.OK
        case ["--help" | "--version" | "help", "--json"] | ["--json", "--help" | "--version"]:
            at_work.console.json(as_json())
            return ExitCode.OK
        case ["help", *rest]:
            return _dispatch(at_work, [*rest, "--help"])
        case ["status"] | ["status", "--json"]:  # scripts and prompts ask it often, and it has no option to parse
            from selfhost.cli._status import answer

            answer(at_work, name=None, json="--json" in argv)
            return ExitCode.OK
        case _:
            from selfhost.cli._group import call  # at use: typer is most of the start

            return call(argv, at_work=at_work)


def _say(at_work: Invocation, error: SelfhostError) -> int:
    at_work.close()
    try:
        at_work.console.error(error)
    except BrokenPipeError:
        _reader_left()
    return error.exit_code


def _reader_left() -> int:
    """Point stdout at nothing, so that the flush at exit is quiet (as pytest does); no check was judged by this."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.CLOSED_PIPE
