"""What a rule is: a marked function from a workload, and the host when it is known, to what is wrong with it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selfhost.core.marks import mark
from selfhost.shapes.finding import Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload

KIND = "rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one rule saw in one place; `lint` adds the rule's id, severity and source."""

    title: str
    place: Place
    evidence: str
    why: str
    fix: tuple[str, ...]


Check = Callable[[Workload, Host | None], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """`source` is a public page or the code that proves the rule."""

    id: str
    severity: Severity
    source: str


def rule(id: str, severity: Severity, *, source: str) -> Callable[[Check], Check]:
    return mark(KIND, Rule(id, severity, source))


def place(workload: Workload, variable: str = "") -> Place:
    """Where `variable` is set, or the whole file."""
    return Place(path=workload.path, line=workload.lines.get(variable), object=variable or workload.name)
