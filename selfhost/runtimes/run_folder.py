"""Where the files of one running engine lie."""

from dataclasses import dataclass
from pathlib import Path


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
