"""What a rule is: a marked function from workloads, and the host when it is known, to what is wrong with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from selfhost.core.marks import mark
from selfhost.shapes.finding import Place, RunOn, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.objects import Manifests

KIND = "rule"


class Scope(StrEnum):
    """What a rule is handed."""

    WORKLOAD = "workload"
    """(Workload, Host | None)"""
    PROJECT = "project"
    """(every Workload of one project, Host | None): what two services do to each other"""
    MANIFESTS = "manifests"
    """(every Kubernetes object of every text, Host | None): what objects say to each other, and to their API"""
    HOST = "host"
    """(Host): what is wrong with a machine, whatever runs there"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one rule saw in one place; `lint` adds the rule's id, severity and source.

    `severity` only where one rule says more or less of it by what was seen, as DV014 by the engine's version.
    """

    title: str
    place: Place
    evidence: str
    why: str
    fix: tuple[str, ...]
    run_on: RunOn = RunOn.HERE
    severity: Severity | None = None


Check = Callable[[Workload, Host | None], Iterator[Found]]
ProjectCheck = Callable[[Sequence[Workload], Host | None], Iterator[Found]]
HostCheck = Callable[[Host], Iterator[Found]]
ManifestCheck = Callable[[Manifests, Host | None], Iterator[Found]]
AnyCheck = Check | ProjectCheck | HostCheck | ManifestCheck


@dataclass(frozen=True, slots=True)
class Rule:
    """`source` is a public page or the code that proves the rule."""

    id: str
    severity: Severity
    source: str
    scope: Scope = Scope.WORKLOAD
    alone: bool = False
    """A project's rule that also speaks of a machine without any file, so doctor asks it too."""


def rule(id: str, severity: Severity, *, source: str) -> Callable[[Check], Check]:
    return mark(KIND, Rule(id, severity, source))


def project_rule(
    id: str, severity: Severity, *, source: str, alone: bool = False
) -> Callable[[ProjectCheck], ProjectCheck]:
    return mark(KIND, Rule(id, severity, source, Scope.PROJECT, alone))


def host_rule(id: str, severity: Severity, *, source: str) -> Callable[[HostCheck], HostCheck]:
    return mark(KIND, Rule(id, severity, source, Scope.HOST))


def manifest_rule(id: str, severity: Severity, *, source: str) -> Callable[[ManifestCheck], ManifestCheck]:
    return mark(KIND, Rule(id, severity, source, Scope.MANIFESTS))


def place(workload: Workload, key: str = "", *, object: str = "") -> Place:
    """Where `key` stands (`env.CUDA_VISIBLE_DEVICES`, `devices.0`), or the workload itself; see Workload.at."""
    spot = workload.spot(key or "name")
    return Place(
        path=spot.path or workload.path if spot else workload.path,
        line=spot.line if spot else None,
        column=spot.column if spot else None,
        object=object or workload.label,
    )
