"""What a rule is: a marked function from a workload, and the host when it is known, to findings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selfhost.core.marks import mark
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload

Check = Callable[[Workload, Host | None], Iterator[Finding]]
KIND = "rule"


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
