"""The folder of one deployment: what was asked, decided and checked, each in a file of its own."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.files import set_aside, write_atomic
from selfhost.core.paths import Paths
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service

T = TypeVar("T")


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
    """Reads and writes the files of one deployment. A damaged file is set aside and reported, never overwritten."""

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
    def bundle(self) -> Path:
        return self.folder / "bundle"

    @property
    def plan_file(self) -> Path:
        return self.folder / "plan.json"

    @property
    def exists(self) -> bool:
        return (self.folder / "service.json").exists() or self.plan_file.exists()

    def service(self) -> Service | None:
        return self._read(self.folder / "service.json", "selfhost.service/", _service)

    def write_service(self, service: Service) -> None:
        body = {"schema": "selfhost.service/1", "service": asdict(service)}
        _write(self.folder / "service.json", body)

    def plan(self) -> Plan | None:
        return self._read(self.plan_file, "selfhost.plan/", _plan)

    def write_plan(self, plan: Plan) -> None:
        from selfhost.plan.to_json import to_json

        _write(self.plan_file, to_json(plan))

    def lock(self) -> dict[str, object]:
        """What was resolved on this machine: the revision of the model, the digest of the bundle."""
        return self._read(self.folder / "lock.json", "selfhost.lock/", dict) or {}

    def write_lock(self, **resolved: object) -> None:
        _write(self.folder / "lock.json", {**self.lock(), "schema": "selfhost.lock/1", **resolved})

    def checks(self) -> Checks | None:
        return self._read(self.folder / "checks.json", "selfhost.checks/", _checks)

    def write_checks(self, checks: Checks) -> None:
        self.checks()  # a damaged one is set aside, not written over
        _write(self.folder / "checks.json", {"schema": "selfhost.checks/1", **asdict(checks)})

    def _read(self, path: Path, schema: str, parse: Callable[[dict[str, object]], T]) -> T | None:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            raw = json.loads(text)
            if not isinstance(raw, dict):
                raise ValueError("not a JSON object")  # noqa: TRY004, TRY301 - one kind of damage, answered below
            _refuse_newer(path, str(raw.get("schema", "")), schema)
            return parse(raw)
        except (ValueError, KeyError, TypeError) as error:
            kept = set_aside(path)
            self._say(
                Finding(
                    id="RT021",
                    severity=Severity.WARNING,
                    title=f"`{path.name}` of `{self.name}` is damaged and was set aside",
                    place=Place(path=str(kept)),
                    evidence=str(error).splitlines()[0][:200],
                    why="selfhost writes it whole or not at all, so something else changed it.",
                    fix=(f"nothing to do, it is made again; to look at it:\nless {kept}",),
                )
            )
            return None


def _refuse_newer(path: Path, found: str, known: str) -> None:
    """A file of a newer selfhost is not damage: it must stay, and we must not touch it."""
    number = found.removeprefix(known)
    if found.startswith(known) and number.isdigit() and int(number) > 1:
        raise EnvironmentMissing(
            f"{path} was written by a newer selfhost (schema {found})",
            why="This version does not know that form and leaves the file as it is.",
            fix=("upgrade selfhost in this environment, then run the command again",),
            id="RT022",
            place=Place(path=str(path)),
        )


def _write(path: Path, body: Mapping[str, object]) -> None:
    write_atomic(path, json.dumps(body, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def _service(raw: dict[str, object]) -> Service:
    from pydantic import TypeAdapter

    return TypeAdapter(Service).validate_json(json.dumps(raw["service"]))


def _plan(raw: dict[str, object]) -> Plan:
    from selfhost.plan.to_json import from_json

    return from_json(raw)


def _checks(raw: dict[str, object]) -> Checks:
    from pydantic import TypeAdapter

    return TypeAdapter(Checks).validate_json(json.dumps({k: v for k, v in raw.items() if k != "schema"}))
