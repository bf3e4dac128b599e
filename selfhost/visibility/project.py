"""Many texts judged together: each by the rules, each with its own suppressions, one broken one beside the others."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.files import Files
from selfhost.visibility.lint import lint_all, lint_objects, looks_at_host, rules
from selfhost.visibility.objects import Manifests
from selfhost.visibility.sources import NOT_OURS, objects_in, read_source
from selfhost.visibility.suppress import kept

if TYPE_CHECKING:
    from selfhost.core.tree import Tree

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
    texts: list[tuple[Source, tuple[Workload, ...]]] = []
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
        texts.append((source, workloads))
        paths.append(source.path)
    of_objects = _of_objects([source for source, _ in texts], host, beside)
    for source, workloads in texts:
        found += _of(source, workloads, host, of_objects)
    own = {source.path for source, _ in texts}
    found += [finding for finding in of_objects if finding.place.path not in own]
    chosen = dict.fromkeys(finding for finding in found if finding.id not in ignore)
    return Judged(findings=tuple(sorted(chosen, key=_order)), read=len(texts), paths=tuple(paths), broken=tuple(broken))


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


def _of_objects(sources: Iterable[Source], host: Host | None, beside: Callable[[str], Files]) -> tuple[Finding, ...]:
    """Findings over the Kubernetes objects of all texts together: a pod and what it names are often files apart.

    Of a folder's texts, those of one folder inside it: overlays and examples repeat the names of others.
    """
    groups: dict[str, list[Tree]] = {}
    for source in sources:
        try:
            found = objects_in(source.text, path=source.path, files=beside(source.path))
        except InputError:
            continue  # a document's block that is no manifest; `read_source` has said what is to be said
        if found:
            groups.setdefault("" if source.named else str(PurePosixPath(source.path).parent), []).extend(found)
    return tuple(finding for trees in groups.values() for finding in lint_objects(Manifests.of(trees), host))


def _of(
    source: Source, workloads: tuple[Workload, ...], host: Host | None, of_objects: Sequence[Finding]
) -> tuple[Finding, ...]:
    known = rules()
    findings = (*lint_all(workloads, host), *(found for found in of_objects if found.place.path == source.path))
    remarked = kept(findings, path=source.path, text=source.text, workloads=workloads, known=known)
    if host is not None:
        return remarked
    return tuple(finding for finding in remarked if finding.id != "CF058" or not set(_needing_host(finding)))


def _needing_host(finding: Finding) -> Iterator[str]:
    """Rules named in an "unused" remark that may be silent only because the machine is not known."""
    return (name for name, (_, check) in rules().items() if name in finding.title and looks_at_host(check))


def _order(finding: Finding) -> tuple[str, int, int, str]:
    return finding.place.path, finding.place.line or 0, finding.place.column or 0, finding.id
