"""Many texts judged together: each by the rules, each with its own suppressions, one broken one beside the others."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.files import Files
from selfhost.visibility.lint import lint_all, looks_at_host, rules
from selfhost.visibility.sources import NOT_OURS, read_source
from selfhost.visibility.suppress import kept

TEMPLATE: Final = "CF059"
"""A chart among the files of a folder is no mistake in it; that it was not judged must be said all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One text. `named`: a person asked for it, so being none of ours is an answer; otherwise it is passed over."""

    path: str
    text: str
    named: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was found, and which texts were looked at: those that could be read, and the broken."""

    findings: tuple[Finding, ...]
    read: int
    paths: tuple[str, ...] = ()
    broken: tuple[InputError, ...] = ()


def judge(
    sources: Iterable[Source],
    *,
    host: Host | None,
    beside: Callable[[str], Files],
    ignore: Collection[str] = (),
) -> Judged:
    """`beside(path)` gives the files next to one text. Findings by path, line, column and id; none twice."""
    found: list[Finding] = []
    broken: list[InputError] = []
    paths: list[str] = []
    read = 0
    for source in sources:
        try:
            workloads = read_source(source.text, path=source.path, files=beside(source.path))
        except InputError as error:
            if not source.named and error.id == TEMPLATE:
                found.append(replace(as_finding(error, source.path), severity=Severity.INFO))
            elif source.named or error.id not in NOT_OURS:
                broken.append(error)
                found.append(as_finding(error, source.path))
                paths.append(source.path)
            continue
        read += 1
        paths.append(source.path)
        found += _of(source, workloads, host)
    chosen = dict.fromkeys(finding for finding in found if finding.id not in ignore)
    return Judged(findings=tuple(sorted(chosen, key=_order)), read=read, paths=tuple(paths), broken=tuple(broken))


def as_finding(error: InputError, path: str) -> Finding:
    """A file that cannot be read, as one finding among those of the others."""
    return Finding(
        id=error.id,
        severity=Severity.ERROR,
        title=error.what,
        place=error.place or Place(path=path),
        evidence=error.evidence,
        why=error.why,
        fix=error.fix,
    )


def _of(source: Source, workloads: tuple[Workload, ...], host: Host | None) -> tuple[Finding, ...]:
    known = rules()
    findings = lint_all(workloads, host)
    remarked = kept(findings, path=source.path, text=source.text, workloads=workloads, known=known)
    if host is not None:
        return remarked
    return tuple(finding for finding in remarked if finding.id != "CF058" or not set(_needing_host(finding)))


def _needing_host(finding: Finding) -> Iterator[str]:
    """Rules named in an "unused" remark that may be silent only because the machine is not known."""
    return (name for name, (_, check) in rules().items() if name in finding.title and looks_at_host(check))


def _order(finding: Finding) -> tuple[str, int, int, str]:
    return finding.place.path, finding.place.line or 0, finding.place.column or 0, finding.id
