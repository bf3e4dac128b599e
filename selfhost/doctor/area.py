"""What an area is: a marked function from the machine to what is wrong there, what is unknown, and a calm line."""

from collections.abc import Callable
from dataclasses import dataclass, field

from selfhost.core.marks import mark
from selfhost.doctor.look import Look
from selfhost.hosts import layers
from selfhost.shapes.finding import Finding, RunOn
from selfhost.shapes.host import Accelerator, Host, Support

KIND = "area"


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """`calm` is said when nothing was found. `unknowns` are what could not be looked at, each with its reason."""

    name: str
    calm: str
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[str, ...] = ()
    settled: bool = True
    """Whether all that was looked at is well, or what was found says why it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`order` is the place among the areas: the cause before what follows from it."""

    id: str
    order: int


@dataclass(slots=True, kw_only=True)
class Seen:
    """The machine, and what one area has said of it so far."""

    host: Host
    look: Look
    findings: list[Finding] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)
    calm: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(layer.label for layer in self.host.nesting)

    @property
    def candidates(self) -> tuple[Accelerator, ...]:
        """Cards that an engine build has code for."""
        return tuple(card for card in self.host.accelerators if card.support is Support.SUPPORTED)


Examine = Callable[[Seen], None]

CONTAINERS = (*layers.CONTAINERS, "apptainer", "enroot")


def area(id: str, *, order: int) -> Callable[[Examine], Examine]:
    return mark(KIND, Spec(id=id, order=order))


def driver_place(labels: tuple[str, ...]) -> RunOn:
    """The machine whose kernel holds the driver."""
    if "pod" in labels:
        return RunOn.CLUSTER_ADMIN
    if any(label in CONTAINERS for label in labels):
        return RunOn.CONTAINER_HOST
    return RunOn.WINDOWS if "wsl2" in labels else RunOn.HERE
