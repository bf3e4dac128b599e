"""Every rule over the objects that are looked at; then the cause before what follows from it, each once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from selfhost.core.marks import collect
from selfhost.doctor.cluster.pod import healthy, phase, scheduler_says, unscheduled
from selfhost.doctor.cluster.rule import KIND, Check, Rule, Seen, Unsure, place
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, text
from selfhost.shapes.finding import Finding, Severity

_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`unknowns` are what cannot be told, each with its reason."""

    findings: tuple[Finding, ...] = ()
    unknowns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One thing that a rule saw, and the workload that it belongs to."""

    rule: Rule
    seen: Seen
    about: Object
    root: str

    @property
    def id(self) -> str:
        return self.seen.id or self.rule.id

    @property
    def severity(self) -> Severity:
        return self.seen.severity or self.rule.severity


def judge(cluster: Cluster, objects: Sequence[Object]) -> Verdict:
    """Pure. `objects` are those that are asked about; all of the cluster is looked at to answer."""
    found, unknowns = [], []
    spoken: set[str] = set()
    rules = {kind: tuple(_rules(kind)) for kind in {text(one, "kind") for one in objects}}
    for one in objects:
        root = _root(cluster, one)
        for rule, check in rules[text(one, "kind")]:
            for said in check(cluster, one):
                spoken.add(root)
                if isinstance(said, Unsure):
                    unknowns.append(said.text)
                    continue
                past = _is_past(cluster, one) and (said.severity or rule.severity) is Severity.ERROR
                seen = replace(said, severity=Severity.WARNING) if past else said
                found.append(_Said(rule=rule, seen=seen, about=said.about or one, root=root))
    open_ = [one for one in objects if _is_unexplained(one) and not _is_past(cluster, one)]
    unknowns += [_unexplained(cluster, one) for one in open_ if _root(cluster, one) not in spoken]
    ordered = _ordered(_once(found))
    return Verdict(findings=tuple(ordered), unknowns=tuple(dict.fromkeys(unknowns)))


def _root(cluster: Cluster, one: Object) -> str:
    """The workload that an object belongs to; a claim belongs to the pod that uses it."""
    users = cluster.users_of(one) if text(one, "kind") == "PersistentVolumeClaim" else ()
    return label(cluster.root(users[0] if users else one))


def _is_past(cluster: Cluster, one: Object) -> bool:
    """A pod that failed and stays to be read, while another of its workload runs."""
    if text(one, "kind") != "Pod" or phase(one) != "Failed":
        return False
    root = cluster.root(one)
    return root is not one and any(healthy(pod) for pod in cluster.pods_of(root))


def _is_unexplained(one: Object) -> bool:
    return text(one, "kind") == "Pod" and not healthy(one)


def _unexplained(cluster: Cluster, pod: Object) -> str:
    state = text(pod, "status", "phase") or "without a phase"
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    why = "events are kept for an hour" if state == "Pending" else "its log may say it"
    known = f"the scheduler said: {cut(said, 200)}" if said else f"nothing among these objects says why: {why}"
    return f"{label(pod)} is {state} and not ready, and {known}"


def _rules(kind: str) -> Iterator[tuple[Rule, Check]]:
    from selfhost.doctor.cluster import rules as package

    for rule, check in cast("dict[str, tuple[Rule, Check]]", collect(package, KIND)).values():
        if kind in rule.kinds:
            yield rule, check


def _once(found: Sequence[_Said]) -> list[tuple[_Said, int]]:
    """The same of several pods of one workload is said of the first, with how many more."""
    kept: dict[tuple[str, str, str], tuple[_Said, int]] = {}
    for one in found:
        own = one.seen.about is not None
        key = (one.id, label(one.about) if own else one.root, "" if own else _shape(one.seen))
        first, more = kept.get(key, (one, -1))
        worst = min(first, one, key=lambda each: _RANK[each.severity])
        kept[key] = (worst, more + 1)
    return list(kept.values())


def _shape(seen: Seen) -> str:
    """What is to be done, without names of single pods: the same way out is the same cause."""
    return "\n".join(action.partition("\n")[0] for action in seen.fix)


def _ordered(found: Sequence[tuple[_Said, int]]) -> Iterator[Finding]:
    """Causes first, the worst first; what follows from a cause after it, as information."""
    roots: dict[str, list[_Said]] = {}
    for said, _ in found:
        if said.severity is not Severity.INFO:
            roots.setdefault(said.root, []).append(said)
    rows = [(said, more, _cause(said, roots.get(said.root, ()))) for said, more in found]
    for said, more, cause in sorted(
        rows, key=lambda row: (bool(row[2]), _RANK[row[0].severity], row[0].root, row[0].id)
    ):
        if not (cause and said.rule.mute):
            yield _finding(said, more, cause)


def _cause(said: _Said, others: Sequence[_Said]) -> str:
    """The id of what this follows from; first of those that follow from nothing themselves."""
    found = [other for other in others if _follows(said, other)]
    first = [other for other in found if not any(_follows(other, each) for each in others)]
    return min((other.id for other in first or found), default="")


def _follows(said: _Said, other: _Said) -> bool:
    ahead = bool(said.rule.after) and other.id != said.id and other.id.startswith(said.rule.after)
    return ahead and not (other.rule.after and said.id.startswith(other.rule.after))


def _finding(said: _Said, more: int, cause: str) -> Finding:
    seen = said.seen
    found = Finding(
        id=said.id,
        severity=Severity.INFO if cause else said.severity,
        title=f"{seen.title} (and {more} more of it)" if more > 0 else seen.title,
        place=place(said.about),
        evidence=seen.evidence,
        why=seen.why,
        fix=seen.fix,
        run_on=seen.run_on,
        source=seen.source or said.rule.source,
    )
    return replace(found, why=f"Follows from {cause}: that first. {seen.why}") if cause else found
