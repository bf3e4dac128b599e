"""What a rule is: a marked function from a cluster and one object of it to what is wrong with that object."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selfhost.core.marks import mark
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, label
from selfhost.shapes.finding import Place, RunOn, Severity

KIND = "cluster_rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one rule saw of one object. `about` is said of instead of the rule's own object, such as a node.

    `id` and `source` only where a row of another table says it, as that of engine failures does.
    """

    title: str
    evidence: str
    why: str
    fix: tuple[str, ...]
    run_on: RunOn = RunOn.HERE
    severity: Severity | None = None
    about: Object | None = None
    id: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Unsure:
    """What cannot be told, with the reason."""

    text: str


Said = Seen | Unsure
Check = Callable[[Cluster, Object], Iterator[Said]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`kinds` of objects that it judges. `source` is a public page or report.

    `after`: where one of these was found of the same workload, this follows from it and is only information.
    """

    id: str
    title: str
    kinds: tuple[str, ...]
    severity: Severity
    source: str
    after: tuple[str, ...] = ()
    mute: bool = False
    """What follows from another is not said at all: it would only repeat its words."""


def cluster_rule(
    id: str,
    *,
    title: str,
    source: str,
    kinds: tuple[str, ...] = ("Pod",),
    severity: Severity = Severity.ERROR,
    after: tuple[str, ...] = (),
    mute: bool = False,
) -> Callable[[Check], Check]:
    """Mark a function. `title` is the meaning of the id; what is seen has its own, with names and values."""
    return mark(KIND, Rule(id=id, title=title, kinds=kinds, severity=severity, source=source, after=after, mute=mute))


def place(one: Object) -> Place:
    return Place(object=label(one))
