"""Run every rule over the workloads of one project and over the host they are meant for."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

from selfhost.shapes.finding import Finding
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.rule import KIND, AnyCheck, Check, Found, HostCheck, ProjectCheck, Rule, Scope


@cache
def rules() -> dict[str, tuple[Rule, AnyCheck]]:
    """Every rule by its id."""
    from selfhost.core.marks import collect
    from selfhost.visibility import rules as package

    return cast("dict[str, tuple[Rule, AnyCheck]]", collect(package, KIND))


def rule_count() -> int:
    return len(rules())


def lint(workload: Workload, host: Host | None) -> tuple[Finding, ...]:
    """Findings of a single workload; see `lint_all`."""
    return lint_all((workload,), host)


def lint_all(workloads: Sequence[Workload], host: Host | None) -> tuple[Finding, ...]:
    """Findings by path, line and id. Without a host, rules that need its facts say nothing."""
    found = [
        _finding(spec, seen) for spec, check in rules().values() for seen in _seen(spec, check, tuple(workloads), host)
    ]
    return tuple(sorted(found, key=lambda finding: (finding.place.path, finding.place.line or 0, finding.id)))


def check_host(host: Host) -> tuple[Finding, ...]:
    """Findings of the rules that need no file: what is wrong with this machine whatever runs on it."""
    return tuple(
        _finding(spec, seen)
        for spec, check in rules().values()
        if spec.scope is Scope.HOST
        for seen in cast("HostCheck", check)(host)
    )


def _seen(spec: Rule, check: AnyCheck, workloads: tuple[Workload, ...], host: Host | None) -> Iterator[Found]:
    if spec.scope is Scope.HOST:
        if host is not None:
            yield from cast("HostCheck", check)(host)
        return
    if spec.scope is Scope.PROJECT:
        yield from cast("ProjectCheck", check)(workloads, host)
        return
    for workload in workloads:
        yield from cast("Check", check)(workload, host)


def _finding(spec: Rule, seen: Found) -> Finding:
    return Finding(
        id=spec.id,
        severity=seen.severity or spec.severity,
        title=seen.title,
        place=seen.place,
        evidence=seen.evidence,
        why=seen.why,
        fix=seen.fix,
        run_on=seen.run_on,
        source=spec.source,
    )
