"""Run every rule over a workload."""

from functools import cache

from selfhost.core.marks import collect
from selfhost.shapes.finding import Finding
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.rule import KIND, Check, Found, Rule


@cache
def rules() -> dict[str, tuple[Rule, Check]]:
    """Every rule by its id."""
    from selfhost.visibility import rules as package

    return collect(package, KIND)  # type: ignore[return-value]  # marks carry any spec; ours is a Rule on a Check


def rule_count() -> int:
    return len(rules())


def lint(workload: Workload, host: Host | None) -> tuple[Finding, ...]:
    """Findings by path, line and id. Without a host, rules that need its facts say nothing."""
    found = [_finding(spec, seen) for spec, check in rules().values() for seen in check(workload, host)]
    return tuple(sorted(found, key=lambda finding: (finding.place.path, finding.place.line or 0, finding.id)))


def _finding(spec: Rule, seen: Found) -> Finding:
    return Finding(
        id=spec.id,
        severity=spec.severity,
        title=seen.title,
        place=seen.place,
        evidence=seen.evidence,
        why=seen.why,
        fix=seen.fix,
        source=spec.source,
    )
