"""What every command is handed: the environment, the eyes, the folders, the voice."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from selfhost.core.console import Console
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.shapes.event import Sink

if TYPE_CHECKING:
    from typer import Context


@dataclass(slots=True, kw_only=True)
class Invocation:
    """One run of the command. `passed_on` is what stood behind `--`."""

    env: Mapping[str, str]
    system: LocalSystem
    console: Console
    passed_on: tuple[str, ...] = ()
    _sinks: list[Sink] = field(default_factory=list)

    @property
    def paths(self) -> Paths:
        """Raises EnvironmentMissing for a user without a home folder."""
        return Paths.of(self.env)

    def sink(self, progress: str = "auto") -> Sink:
        """Where events of this run go; `progress` is auto, tty, plain, json or quiet. Closed by `run` at the latest."""
        from selfhost.core.progress import Tty, choose  # at use: help and status show no progress

        self.console.json_lines = progress == "json"
        asked = "quiet" if self.console.quiet and progress == "auto" else progress
        sink = choose(asked, self.console.err.stream, self.env)
        if isinstance(sink, Tty):
            self.console.share(sink)
        self._sinks.append(sink)
        return sink

    def close(self) -> None:
        while self._sinks:
            self._sinks.pop().close()


def invocation_of(argv: Sequence[str]) -> Invocation:
    """Built before parsing, because a wrong option beside `--json` or `--progress json` is still reported as JSON."""
    system = LocalSystem()
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    console = Console(sys.stdout, sys.stderr, system.env, json="--json" in own)
    console.json_lines = "--progress=json" in own or ("--progress", "json") in pairwise(own)
    return Invocation(env=system.env, system=system, console=console)


def invocation(context: "Context") -> Invocation:
    """The invocation that `run` put into `context`."""
    found = context.obj
    if not isinstance(found, Invocation):
        raise TypeError("the command was not started by cli.run")
    return found
