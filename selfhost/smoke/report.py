"""The result of one run of smoke."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from selfhost.shapes.endpoint import Endpoint
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding, Report

CheckState = Literal["passed", "failed", "skipped", "undecided", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check. `reason` says what was seen when it passed, and why it did not otherwise."""

    id: str
    title: str
    group: str
    state: CheckState
    seconds: float = 0.0
    reason: str = ""
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeReport:
    """All checks in the order they ran."""

    endpoint: Endpoint
    checks: tuple[CheckResult, ...]
    seconds: float

    def count(self, *states: CheckState) -> int:
        counts = Counter(check.state for check in self.checks)
        return sum(counts[state] for state in states)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(check.finding for check in self.checks if check.finding is not None)

    @property
    def exit_code(self) -> ExitCode:
        if self.count("failed", "error"):
            return ExitCode.NO
        return ExitCode.OK if self.count("passed") else ExitCode.UNDECIDED

    def summary(self) -> str:
        """What was shown, and no more."""
        failed, not_run = self.count("failed", "error"), self.count("skipped", "undecided")
        counts = [f"{self.count('passed')} of {len(self.checks)} checks passed"]
        counts += [f"{failed} failed"] if failed else []
        counts += [f"{not_run} not run"] if not_run else []
        garbage = next((check for check in self.checks if check.id == "SM110"), None)
        unjudged = "; the garbage check could not judge this model: nothing says that its answers are sane"
        held = "for this driver, image, model and plan" if self.endpoint.runtime else "for this address as it is now"
        return f"{', '.join(counts)}; {held}{unjudged if _open(garbage) else ''}; answer quality not tested"

    def to_json(self) -> dict[str, object]:
        """Schema selfhost.findings/1 with every check."""
        return Report.of(self.findings).to_json() | {
            "ok": self.exit_code is ExitCode.OK,
            "exit_code": int(self.exit_code),
            "endpoint": {
                "name": self.endpoint.name,
                "base_url": self.endpoint.base_url,
                "model": self.endpoint.model,
                "engine": self.endpoint.engine,
                "engine_version": self.endpoint.engine_version,
            },
            "seconds": round(self.seconds, 3),
            "text": self.summary(),
            "checks": [
                {
                    "id": check.id,
                    "title": check.title,
                    "group": check.group,
                    "state": check.state,
                    "seconds": round(check.seconds, 3),
                    "reason": check.reason,
                }
                for check in self.checks
            ],
        }


def _open(check: CheckResult | None) -> bool:
    return check is not None and check.state == "undecided"
