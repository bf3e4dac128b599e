"""The folder of one deployment: what was asked, decided and checked, each in a file of its own."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.files import write_atomic
from selfhost.core.json_file import read_json
from selfhost.core.paths import Paths
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service

T = TypeVar("T")
DAMAGED = "RT021"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The result of the last smoke run: for which plan and engine start, and its JSON report."""

    plan_digest: str
    instance: str
    at: str
    exit_code: int
    summary: str
    report: dict[str, object]


class State:
    """Reads and writes the files of one deployment. A damaged file is set aside and reported, never overwritten.

    service.json and plan.json are those of the engine that was started last: a plan that was only tried leaves none.
    """

    def __init__(self, paths: Paths, name: str, *, say: Callable[[Finding], None]) -> None:
        self.name = name
        self.folder = paths.deployment(name)
        self._say = say

    @property
    def lock_file(self) -> Path:
        return self.folder / ".lock"

    @property
    def journal_file(self) -> Path:
        return self.folder / "journal.jsonl"

    @property
    def key_file(self) -> Path:
        return self.folder / "key"

    @property
    def env_file(self) -> Path:
        """The key once more, as `VARIABLE=key`: what a container engine takes."""
        return self.folder / "engine.env"

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"

    def service(self) -> Service | None:
        return self._read("service", _service)

    def plan(self) -> Plan | None:
        return self._read("plan", _plan)

    def write_wanted(self, service: Service, plan: Plan) -> None:
        """What the engine that is about to start is for; before that, neither file changes."""
        from selfhost.plan.to_json import to_json

        self.service(), self.plan()  # damaged ones are set aside, not written over
        self._write("service", {"schema": "selfhost.service/1", "service": asdict(service)})
        self._write("plan", to_json(plan))

    def lock(self) -> dict[str, Any]:
        """What was resolved on this machine: the revision of the model, the sums of the rendered files."""
        return self._read("lock", dict) or {}

    def write_lock(self, **resolved: object) -> None:
        self._write("lock", {**self.lock(), "schema": "selfhost.lock/1", **resolved})

    def checks(self) -> Checks | None:
        return self._read("checks", _checks)

    def write_checks(self, checks: Checks) -> None:
        self.checks()  # a damaged one is set aside, not written over
        self._write("checks", {"schema": "selfhost.checks/1", **asdict(checks)})

    def _read(self, kind: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        path = self.folder / f"{kind}.json"
        value, findings = read_json(
            path,
            parse,
            schema=f"selfhost.{kind}/1",
            id=DAMAGED,
            title=f"`{path.name}` of `{self.name}` is damaged, or was written by another version of selfhost",
        )
        for finding in findings:
            if finding.severity is Severity.ERROR:  # a newer selfhost wrote it
                raise EnvironmentMissing(
                    finding.title, why=finding.why, fix=finding.fix, id=finding.id, place=finding.place
                )
            self._say(finding)
        return value

    def _write(self, kind: str, body: Mapping[str, object]) -> None:
        text = json.dumps(body, indent=1, ensure_ascii=False, sort_keys=True)
        write_atomic(self.folder / f"{kind}.json", text + "\n")


def _service(raw: dict[str, Any]) -> Service:
    from pydantic import TypeAdapter

    return TypeAdapter(Service).validate_json(json.dumps(raw["service"]))


def _plan(raw: dict[str, Any]) -> Plan:
    from selfhost.plan.to_json import from_json

    return from_json(raw)


def _checks(raw: dict[str, Any]) -> Checks:
    from pydantic import TypeAdapter

    return TypeAdapter(Checks).validate_json(json.dumps({k: v for k, v in raw.items() if k != "schema"}))
