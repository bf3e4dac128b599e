"""What tests of installations share: a home of their own, a pip that sees tiny wheels only, a sink that remembers."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.shapes.event import Event
from tests.fakes import wheels


@dataclass
class Events:
    """A sink that remembers."""

    seen: list[Event] = field(default_factory=list)

    def on(self, event: Event) -> None:
        self.seen.append(event)

    def close(self) -> None:
        return None

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.seen]


def system(folder: Path, home: Path, **more: str) -> LocalSystem:
    """This machine with a pip that sees the wheels in `folder` only and keeps its cache in `home`."""
    base = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "xdg")}
    return LocalSystem({**wheels.environment(base, folder), **more})


def bench(home: Path) -> tuple[LocalSystem, Paths, Events]:
    return system(home / "wheels", home), Paths(state=home / "state", cache=home / "cache"), Events()
