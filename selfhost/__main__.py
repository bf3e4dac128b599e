"""The entry point: `--version` before any import, everything else through cli.run, whose code ends the process."""

import os
import sys

from selfhost import __version__


def main() -> None:
    _open_what_is_closed()
    if sys.argv[1:] == ["--version"]:
        print(f"selfhost {__version__}")  # noqa: T201 - the console alone would double this command's time
        return
    try:
        from selfhost.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # so early that nobody below could say it
        code = 130
    sys.exit(code)


def _open_what_is_closed() -> None:
    """A stream that was closed before we started (`selfhost status 2>&-`) leads nowhere, instead of being none at all.

    Without it the next file that is opened takes its number, and an engine's words would be written into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: the one that was closed
            os.set_inheritable(handle, True)  # noqa: FBT003 - the signature of os
            setattr(sys, name, os.fdopen(handle, mode, encoding="utf-8"))


if __name__ == "__main__":
    main()
