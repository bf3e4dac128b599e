"""The small files in a deployment's `run` folder: what was asked to start, what runs, how it ended."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.files import set_aside, write_atomic
from selfhost.core.processes import ProcessRef
from selfhost.shapes.finding import Finding, Place, Severity

ENGINE_SCHEMA = "selfhost.engine/1"
EXIT_SCHEMA = "selfhost.exit/1"


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
        if raw["schema"] != ENGINE_SCHEMA:
            raise ValueError(raw["schema"])
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
        if raw["schema"] != EXIT_SCHEMA:
            raise ValueError(raw["schema"])
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
    raw, findings = read_object(path, schema=ENGINE_SCHEMA)
    try:
        return (EngineRecord.from_json(raw) if raw is not None else None), findings
    except (ValueError, KeyError, TypeError) as error:
        return None, (damaged(path, str(error)),)


def read_exit(path: Path) -> tuple[ExitRecord | None, tuple[Finding, ...]]:
    raw, findings = read_object(path, schema=EXIT_SCHEMA)
    try:
        return (ExitRecord.from_json(raw) if raw is not None else None), findings
    except (ValueError, KeyError, TypeError) as error:
        return None, (damaged(path, str(error)),)


def read_object(path: Path, *, schema: str) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """The JSON object in `path`; a missing file is no news.

    What is no JSON object is set aside and reported. What a newer selfhost wrote (the number behind the slash of its
    schema is higher) is reported and left as it is.
    """
    try:
        raw = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None, ()
    except OSError as error:
        return None, (unreadable(path, error),)
    except ValueError as error:
        return None, (damaged(path, str(error)),)
    if not isinstance(raw, dict):
        return None, (damaged(path, "it holds no JSON object"),)
    if _is_newer(str(raw.get("schema", "")), schema):
        return None, (newer(path, str(raw["schema"])),)
    return raw, ()


def _is_newer(found: str, known: str) -> bool:
    kind, _, number = known.rpartition("/")
    asked = found.removeprefix(f"{kind}/")
    return found.startswith(f"{kind}/") and asked.isdigit() and int(asked) > int(number)


def newer(path: Path, schema: str) -> Finding:
    return Finding(
        id="RT022",
        severity=Severity.ERROR,
        title=f"{path} was written by a newer selfhost (schema {schema})",
        place=Place(path=str(path)),
        why="This version does not know that form and leaves the file as it is.",
        fix=("upgrade selfhost in this environment, then run the command again",),
    )


def damaged(path: Path, evidence: str) -> Finding:
    """Set `path` aside and say so."""
    try:
        kept, fix = set_aside(path), "nothing to do; the damaged file is kept:\nless "
    except OSError:  # another command set it aside just now, or the disk is read-only
        kept, fix = path, "look at it:\nless "
    return Finding(
        id="RT051",
        severity=Severity.WARNING,
        title=f"`{path.name}` of `{_deployment(path)}` is damaged",
        place=Place(path=str(kept)),
        evidence=evidence.splitlines()[0][:200] if evidence else "",
        why="selfhost writes it whole or not at all, so something else changed it. What runs is found without it.",
        fix=(f"{fix}{kept}",),
    )


def unreadable(path: Path, error: OSError) -> Finding:
    return Finding(
        id="RT052",
        severity=Severity.WARNING,
        title=f"`{path.name}` of `{_deployment(path)}` cannot be read",
        place=Place(path=str(path)),
        evidence=error.strerror or str(error),
        why="It belongs to another user, or its disk does not answer.",
        fix=(f"look at it:\nls -l {path}",),
    )


def _deployment(path: Path) -> str:
    return path.parent.parent.name if path.parent.name == "run" else path.parent.name
