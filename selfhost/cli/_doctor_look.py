"""Whom doctor looks at: this machine with the containers of ours, another machine, or the inside of a container."""

from dataclasses import dataclass, replace

from selfhost.cli._context import Invocation
from selfhost.cli._doctor_cluster import Meant, look_in_cluster
from selfhost.cli._eyes import eyes
from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.system import System
from selfhost.deploy.inside import Card
from selfhost.deploy.inside_area import Own, deployment, deployments, describe, own_container
from selfhost.doctor.area import Area
from selfhost.doctor.areas.kubernetes import cluster_area
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.examine import Examination, examine
from selfhost.doctor.granted import Comparison, compare
from selfhost.doctor.inspected import inspected
from selfhost.doctor.look import look
from selfhost.hosts.detect import detect
from selfhost.shapes.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """`comparison` and `cards` are of a container that was looked into."""

    machine: Host | None
    """None where only a cluster was asked."""
    examination: Examination
    comparison: Comparison | None = None
    own: Own | None = None
    cards: tuple[Card, ...] = ()
    where: str = ""
    """Which cluster was asked."""
    undecided: bool = False
    """One object was asked about, it is not well, and nothing says why."""

    @property
    def head(self) -> tuple[str, ...]:
        """Whose container it is, or which cluster, before the areas."""
        if self.where:
            return self.where, ""
        return (describe(self.own), "") if self.own is not None else ()


def look_at(at_work: Invocation, *, host: str | None, inside: str | None, meant: Meant) -> Looked:
    """Raises InputError and EnvironmentMissing as `eyes` does."""
    if meant.named:
        found = look_in_cluster(at_work, meant)
        examination = Examination(areas=(found.area,))
        return Looked(machine=None, examination=examination, where=found.head, undecided=found.undecided)
    if inside is None:
        return _machine(at_work, eyes(at_work, host=host, inside=None), here=host is None)
    paths = _paths(at_work) if host is None else None
    own = own_container(paths, at_work.system, inside, say=at_work.console.finding) if paths is not None else None
    if own is not None:
        return _own(at_work, own)
    system = eyes(at_work, host=host, inside=inside)
    machine = detect(system, wide=True)
    kind, _, name = inside.rpartition(":")
    shown = inspected(at_work.system, name, (kind,) if kind else ("docker", "podman"))
    outside = detect(at_work.system, wide=True) if shown is not None else None
    return Looked(
        machine=machine,
        examination=examine(machine, look(system, machine)),
        comparison=compare(shown, outside, machine) if shown is not None and outside is not None else None,
    )


def _machine(at_work: Invocation, system: System, *, here: bool) -> Looked:
    machine = detect(system, wide=True)
    if not here and _only_a_cluster(system):
        return Looked(machine=machine, examination=Examination(areas=(cluster_area(Cluster(system.kubernetes)),)))
    examination = examine(machine, look(system, machine))
    paths = _paths(at_work) if here else None
    if paths is not None:
        own = deployments(paths, at_work.system, machine, say=at_work.console.finding)
        examination = _with(examination, own) if own is not None else examination
    return Looked(machine=machine, examination=examination)


def _only_a_cluster(system: System) -> bool:
    """A snapshot of API objects and of no machine."""
    if not system.kubernetes or system.env:
        return False
    try:
        return not system.listdir("/")
    except OSError:
        return True


def _own(at_work: Invocation, own: Own) -> Looked:
    """A container that lets nobody in is still told of, when its card is lost on the machine itself."""
    outside = detect(at_work.system, wide=True)
    try:
        system = eyes(at_work, host=None, inside=own.target)
    except EnvironmentMissing as closed:
        area, cards = deployment(own, at_work.system, outside, closed.what)
        if not any(card.lost for card in cards):
            raise
        return Looked(machine=outside, examination=Examination(areas=(area,)), own=own, cards=cards)
    machine = detect(system, wide=True)
    area, cards = deployment(own, at_work.system, outside, machine)
    shown = inspected(at_work.system, own.target.partition(":")[2], (own.engine,))
    comparison = compare(shown, outside, machine) if shown is not None else None
    examination = examine(machine, look(system, machine))
    return Looked(
        machine=machine,
        examination=Examination(areas=(area, *examination.areas)),
        comparison=_once(comparison, area) if comparison is not None else None,
        own=own,
        cards=cards,
    )


def _with(examination: Examination, area: Area) -> Examination:
    return Examination(areas=(*examination.areas, area))


def _once(comparison: Comparison, area: Area) -> Comparison:
    """Without what the deployment's own area says better: its fix names the commands of this deployment."""
    said = [finding.id for finding in area.findings]
    return replace(comparison, findings=tuple(one for one in comparison.findings if one.id not in said))


def _paths(at_work: Invocation) -> Paths | None:
    """None for a user without a home folder, who has deployed nothing."""
    try:
        return at_work.paths
    except EnvironmentMissing:
        return None
