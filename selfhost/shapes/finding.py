"""One thing worth saying, with the same face in up, explain and smoke."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from selfhost.shapes.exit import ExitCode


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class RunOn(StrEnum):
    """The machine that a fix belongs on."""

    HERE = "here"
    CONTAINER_HOST = "container host"
    HYPERVISOR = "hypervisor"
    WINDOWS = "Windows"
    CLUSTER_ADMIN = "cluster admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands: a file and line, or an object such as a service, a device, a check."""

    path: str = ""
    line: int | None = None
    object: str = ""
    column: int | None = None

    def __str__(self) -> str:
        spot = f"{self.path}:{self.line}" if self.path and self.line else self.path
        return " ".join(part for part in (spot, self.object) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation. `fix` holds one entry per action, in the order to try.

    An action is one sentence; lines after its first newline are commands to paste.
    """

    id: str
    severity: Severity
    title: str
    place: Place = field(default_factory=Place)
    evidence: str = ""
    why: str = ""
    fix: tuple[str, ...] = ()
    run_on: RunOn = RunOn.HERE
    source: str = ""

    def to_json(self) -> dict[str, object]:
        """The stable JSON form (schema selfhost.findings/1)."""
        return {
            "id": self.id,
            "severity": self.severity.value,
            "title": self.title,
            "where": str(self.place),
            "path": self.place.path,
            "line": self.place.line,
            "column": self.place.column,
            "object": self.place.object,
            "evidence": self.evidence,
            "why": self.why,
            "fix": "\n".join(self.fix),
            "run_on": self.run_on.value,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings of one run."""

    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Report":
        return cls(findings=tuple(findings))

    @property
    def ok(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.OK if self.ok else ExitCode.NO

    def to_json(self) -> dict[str, object]:
        counts = Counter(finding.severity for finding in self.findings)
        return {
            "schema": "selfhost.findings/1",
            "ok": self.ok,
            "summary": {severity.value: counts[severity] for severity in Severity},
            "findings": [finding.to_json() for finding in self.findings],
        }
