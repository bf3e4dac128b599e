"""The entry point: `--version` before any import, everything else through cli.run, whose code ends the process."""

import sys

from selfhost import __version__


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print(f"selfhost {__version__}")  # noqa: T201 - the console alone would double this command's time
        return
    from selfhost.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
