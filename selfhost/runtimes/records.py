"""What the keeper writes down of an engine: who it is while it runs, and how it ended."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from selfhost.core.files import write_atomic
from selfhost.core.json_file import read_json
from selfhost.core.processes import ProcessRef
from selfhost.shapes.finding import Finding

T = TypeVar("T")

ENGINE_SCHEMA = "selfhost.engine/1"
EXIT_SCHEMA = "selfhost.exit/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord:
    """engine.json: who the engine is. No secret is in it; the command line holds none."""

    pid: int
    start_ticks: int
    boot_id: str
    keeper_pid: int
    keeper_start_ticks: int
    instance: str
    plan_digest: str
    port: int | None
    started_at: float
    python: str = ""
    argv: tuple[str, ...] = ()
    log: str = ""

    @property
    def leader(self) -> ProcessRef:
        return ProcessRef(pid=self.pid, start_ticks=self.start_ticks)

    def to_json(self) -> dict[str, object]:
        return {
            "schema": ENGINE_SCHEMA,
            "pid": self.pid,
            "start_ticks": self.start_ticks,
            "boot_id": self.boot_id,
            "keeper": {"pid": self.keeper_pid, "start_ticks": self.keeper_start_ticks},
            "instance": self.instance,
            "plan_digest": self.plan_digest,
            "port": self.port,
            "python": self.python,
            "argv": list(self.argv),
            "started_at": self.started_at,
            "log": self.log,
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "EngineRecord":
        """Raises ValueError, KeyError or TypeError for anything that we did not write."""
        port = raw["port"]
        return cls(
            pid=int(raw["pid"]),
            start_ticks=int(raw["start_ticks"]),
            boot_id=str(raw["boot_id"]),
            keeper_pid=int(raw["keeper"]["pid"]),
            keeper_start_ticks=int(raw["keeper"]["start_ticks"]),
            instance=str(raw["instance"]),
            plan_digest=str(raw["plan_digest"]),
            port=None if port is None else int(port),
            started_at=float(raw["started_at"]),
            python=str(raw.get("python", "")),
            argv=tuple(str(word) for word in raw.get("argv", ())),
            log=str(raw.get("log", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """exit.json: how it ended. `error` when the engine could not even be started."""

    instance: str
    code: int | None
    signal: int | None
    at: float
    stopped: bool = False
    forced: bool = False
    """It had to be killed when it was stopped."""
    out_of_memory: bool | None = None
    error: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "schema": EXIT_SCHEMA,
            "instance": self.instance,
            "code": self.code,
            "signal": self.signal,
            "at": self.at,
            "stopped": self.stopped,
            "forced": self.forced,
            "out_of_memory": self.out_of_memory,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "ExitRecord":
        return cls(
            instance=str(raw["instance"]),
            code=None if raw["code"] is None else int(raw["code"]),
            signal=None if raw["signal"] is None else int(raw["signal"]),
            at=float(raw["at"]),
            stopped=bool(raw["stopped"]),
            forced=bool(raw.get("forced", False)),
            out_of_memory=raw.get("out_of_memory"),
            error=str(raw.get("error", "")),
        )


def write(path: Path, record: EngineRecord | ExitRecord) -> None:
    write_atomic(path, json.dumps(record.to_json(), indent=1) + "\n")


def read_engine(path: Path) -> tuple[EngineRecord | None, tuple[Finding, ...]]:
    return _read(path, EngineRecord.from_json, schema=ENGINE_SCHEMA)


def read_exit(path: Path) -> tuple[ExitRecord | None, tuple[Finding, ...]]:
    return _read(path, ExitRecord.from_json, schema=EXIT_SCHEMA)


def _read(path: Path, parse: Callable[[dict[str, Any]], T], *, schema: str) -> tuple[T | None, tuple[Finding, ...]]:
    return read_json(
        path,
        parse,
        schema=schema,
        id="RT051",
        title=f"`{path.name}` of `{path.parent.parent.name}` is damaged; what runs is found without it",
    )
