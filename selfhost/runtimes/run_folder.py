"""Where the files of one running engine lie, and what a keeper says that finds the place taken."""

from dataclasses import dataclass
from pathlib import Path

LOCK_HELD = 75
"""Exit code of a keeper (EX_TEMPFAIL): another keeper or an engine of this deployment holds the lock."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files between `start`, the keeper and `inspect`, and the logs."""

    deployment: Path

    @property
    def run(self) -> Path:
        return self.deployment / "run"

    @property
    def lock(self) -> Path:
        """Held from the start of the keeper until the last process of the engine is gone."""
        return self.run / "engine.lock"

    @property
    def launch(self) -> Path:
        return self.run / "launch.json"

    @property
    def engine(self) -> Path:
        return self.run / "engine.json"

    @property
    def exit(self) -> Path:
        return self.run / "exit.json"

    @property
    def stop(self) -> Path:
        return self.run / "stop.json"

    @property
    def engine_log(self) -> Path:
        return self.deployment / "logs" / "engine.log"

    @property
    def keeper_log(self) -> Path:
        return self.deployment / "logs" / "keeper.log"
