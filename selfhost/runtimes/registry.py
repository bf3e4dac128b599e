"""What deployments there are, by their folders. Standard library only: `status` reads this at every start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.paths import Paths
from selfhost.runtimes.records import ENGINE_SCHEMA, read_object
from selfhost.shapes.finding import Finding

SCHEMAS = {"service.json": "selfhost.service/1", "plan.json": "selfhost.plan/1", "engine.json": ENGINE_SCHEMA}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One deployment as it lies on the disk; what runs is asked from its runtime. None: there is no such file."""

    name: str
    folder: Path
    service: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    engine: dict[str, Any] | None = None
    newer: bool = False
    """A newer selfhost wrote some of it: to be left alone."""
    findings: tuple[Finding, ...] = ()


def names(paths: Paths) -> tuple[str, ...]:
    """Every deployment that something was recorded of, in order."""
    try:
        entries = sorted(entry for entry in paths.deployments.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(entry.name for entry in entries if entry.is_dir() and _recorded(entry))


def load(paths: Paths, name: str) -> Record:
    """Read one deployment. Damaged files are set aside and reported; those of a newer version stay and are not used."""
    folder = paths.deployment(name)
    found: dict[str, dict[str, Any] | None] = {}
    findings: list[Finding] = []
    for path in (folder / "service.json", folder / "plan.json", folder / "run" / "engine.json"):
        found[path.name], said = read_object(path, schema=SCHEMAS[path.name])
        findings.extend(said)
    return Record(
        name=name,
        folder=folder,
        service=found["service.json"],
        plan=found["plan.json"],
        engine=found["engine.json"],
        newer=any(finding.id == "RT022" for finding in findings),
        findings=tuple(findings),
    )


def _recorded(folder: Path) -> bool:
    """A folder of only a lock or a key is what a refused `up` leaves, no deployment."""
    wanted = ("service.json", "plan.json", "journal.jsonl", "run/engine.json", "run/launch.json")
    return any((folder / name).exists() for name in wanted)
