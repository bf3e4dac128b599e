"""Run every rule over the workloads of one project and over the host they are meant for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from selfhost.shapes.finding import Finding
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.objects import Manifests
from selfhost.visibility.rule import KIND, AnyCheck, Check, Found, HostCheck, ManifestCheck, ProjectCheck, Rule, Scope

if TYPE_CHECKING:
    from types import FunctionType


@cache
def rules() -> dict[str, tuple[Rule, AnyCheck]]:
    """Every rule by its id."""
    from selfhost.core.marks import collect
    from selfhost.visibility import manifests, rules

    found = {**collect(rules, KIND), **collect(manifests, KIND)}
    return cast("dict[str, tuple[Rule, AnyCheck]]", dict(sorted(found.items())))


def rule_count() -> int:
    return len(rules())


def looks_at_host(check: AnyCheck) -> bool:
    """Whether a rule reads its host at all: such a rule says more, or anything, only when the machine is known."""
    import dis  # at use: only for the closing remark

    code = cast("FunctionType", check).__code__
    names = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname.startswith("LOAD") and step.opname != "LOAD_CONST"
    }
    return "host" in code.co_varnames[: code.co_argcount] and any("host" in name for name in names)


def host_rule_count() -> int:
    """Rules that would say more if the machine were named."""
    return sum(looks_at_host(check) for _, check in rules().values())


def lint(workload: Workload, host: Host | None) -> tuple[Finding, ...]:
    """Findings of a single workload; see `lint_all`."""
    return lint_all((workload,), host)


def lint_all(workloads: Sequence[Workload], host: Host | None) -> tuple[Finding, ...]:
    """Findings by path, line and id. Without a host, rules that need its facts say nothing."""
    found = [
        _finding(spec, seen) for spec, check in rules().values() for seen in _seen(spec, check, tuple(workloads), host)
    ]
    return tuple(sorted(found, key=lambda finding: (finding.place.path, finding.place.line or 0, finding.id)))


def lint_objects(manifests: Manifests, host: Host | None) -> tuple[Finding, ...]:
    """What the rules over whole Kubernetes objects find, by path, line and id."""
    found = [
        _finding(spec, seen)
        for spec, check in rules().values()
        if spec.scope is Scope.MANIFESTS
        for seen in cast("ManifestCheck", check)(manifests, host)
    ]
    return tuple(sorted(found, key=lambda finding: (finding.place.path, finding.place.line or 0, finding.id)))


def check_host(host: Host) -> tuple[Finding, ...]:
    """Findings of the rules that need no file: what is wrong with this machine whatever runs on it."""
    return tuple(
        _finding(spec, seen)
        for spec, check in rules().values()
        if spec.scope is Scope.HOST or spec.alone
        for seen in _seen(spec, check, (), host)
    )


def _seen(spec: Rule, check: AnyCheck, workloads: tuple[Workload, ...], host: Host | None) -> Iterator[Found]:
    if spec.scope is Scope.HOST:
        if host is not None:
            yield from cast("HostCheck", check)(host)
        return
    if spec.scope is Scope.MANIFESTS:
        return
    if spec.scope is Scope.PROJECT:
        yield from cast("ProjectCheck", check)(workloads, host)
        return
    for workload in workloads:
        for seen in cast("Check", check)(workload, host):
            if not (workload.opaque and _says_missing(spec, seen, workload)):
                yield _placed(seen, workload)


def _placed(seen: Found, workload: Workload) -> Found:
    """What a rule says of the whole workload stands where the workload begins."""
    begins = workload.at.get("name")
    if begins is None or seen.place.line is not None or seen.place.path != workload.path:
        return seen
    return replace(seen, place=replace(seen.place, line=begins.line, column=begins.column))


_DEVICES: Final = ("DV010", "DV023", "DV040", "DV041", "DV060", "DV060b")
_MISSING: Final = {
    "--cap-add": ("DV050",),
    "--device": _DEVICES,
    "--env": ("DV010", "DV037", "DV063"),
    "--env-file": ("DV010", "DV037", "DV063"),
    "--gpus": _DEVICES,
    "--group-add": ("DV042", "DV043"),
    "--ipc": ("DV051",),
    "--runtime": _DEVICES,
    "--security-opt": ("DV050", "DV074"),
    "--shm-size": ("DV051",),
    "--user": ("DV042",),
}
"""Rules that miss something, by the option whose value only the run knows: it may be there."""


def _says_missing(spec: Rule, seen: Found, workload: Workload) -> bool:
    """Whether what a rule misses may stand in what only the run knows, such as `$EXTRA_ARGS`.

    What is missing has no place of its own, so a rule points at the beginning of the workload.
    """
    options = {text.split()[0] for text in workload.opaque if text.startswith("--")}
    if any(spec.id in _MISSING.get(option, ()) for option in options):
        return True
    if all(text.startswith("--") for text in workload.opaque):
        return False
    begins = workload.at.get("name")
    at_beginning = begins is not None and (seen.place.line, seen.place.column) == (begins.line, begins.column)
    return at_beginning or any(spec.id in ids for ids in _MISSING.values())


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
