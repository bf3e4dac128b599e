"""selfhost on another machine: `as_machine.py SNAPSHOT.json up …` looks at a snapshot and acts on this one.

The one seam is `Workplace.eyes`. Cards, drivers and tools are the snapshot's; container engines, CDI files (and nodes
that only they name), disks and the user are this machine's. AS_PODMAN: the version that podman is said to have, for
units that need a newer one.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from selfhost.cli import _work
from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed, LocalSystem, Node

_ENGINES = ("docker", "podman")
_PLACES = ("/etc/cdi", "/run/cdi", "/var/run/cdi", "/dev/nvidia-caps/")
_VARIABLES = ("DOCKER_", "CONTAINER", "PATH", "HOME", "XDG_")


class Eyes:
    """Implements System."""

    kubernetes: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, recorded: Recorded, here: LocalSystem) -> None:
        self._there, self._here = recorded, here

    @property
    def env(self) -> Mapping[str, str]:
        own = {name: value for name, value in self._here.env.items() if name.startswith(_VARIABLES)}
        return {**self._there.env, **own}

    @property
    def ids(self) -> Mapping[str, Any]:
        return self._here.ids

    def read(self, path: str) -> str:
        return self._of(path).read(path)

    def listdir(self, path: str) -> tuple[str, ...]:
        return self._of(path).listdir(path)

    def readlink(self, path: str) -> str:
        return self._of(path).readlink(path)

    def stat(self, path: str) -> Node:
        return self._of(path).stat(path)

    def try_open(self, path: str) -> str:
        return self._of(path).try_open(path)

    def disk(self, path: str) -> tuple[int, int]:
        return self._here.disk(path)

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Completed:
        eyes = self._here if argv[0] in _ENGINES else self._there
        done = eyes.run(argv, timeout_s=timeout_s, env=env, stdin=stdin)
        if "AS_PODMAN" in os.environ and argv[:2] == ("podman", "info") and done.ok:
            told = json.loads(done.stdout)
            told["version"]["Version"] = os.environ["AS_PODMAN"]
            done = replace(done, stdout=json.dumps(told))
        return done

    def nvml(self) -> Mapping[str, Any]:
        return self._there.nvml()

    def libraries(self) -> tuple[str, ...] | None:
        return self._there.libraries()

    def _of(self, path: str) -> Recorded | LocalSystem:
        return self._here if path.startswith(_PLACES) else self._there


def main() -> None:
    from selfhost.__main__ import main as selfhost

    snapshot = json.loads(Path(sys.argv.pop(1)).read_text())
    plain = _work.workplace

    def elsewhere(*words: Any, **named: Any) -> Any:
        work = plain(*words, **named)
        return replace(work, eyes=Eyes(Recorded(snapshot), work.system))

    _work.workplace = elsewhere
    sys.argv[0] = "selfhost"
    selfhost()


if __name__ == "__main__":
    main()
