"""Whether a model fits: on this machine, on one that was looked at, or on cards that nobody here owns."""

from collections.abc import Callable
from dataclasses import dataclass

from selfhost.deploy.gather import Gathered, plan_for
from selfhost.deploy.wording import naming
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.cards import of
from selfhost.hosts.imagined import host_with
from selfhost.hosts.placement import no_code
from selfhost.plan.again import again_on
from selfhost.plan.claims import Speed, speed_of
from selfhost.plan.decide import Decided
from selfhost.plan.memory.weights import bytes_per_parameter
from selfhost.plan.ways_out import Door, Way, ways_out
from selfhost.shapes.host import Host, Support
from selfhost.shapes.plan import Plan, Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """Cards that nobody looked at. `memory` in bytes overrides the table."""

    name: str
    count: int = 1
    memory: int | None = None

    def host(self, count: int | None = None) -> Host:
        """Raises InputError for a card in no row, and what the gate says of one that no engine computes on."""
        made = host_with(self.name, count=count or self.count, memory=self.memory)
        if made.accelerators[0].support is Support.UNSUPPORTED:
            raise no_code(made.accelerators[0])
        return made

    @property
    def words(self) -> tuple[str, ...]:
        size = ("--gpu-memory", f"{self.memory / GIB:g}") if self.memory else ()
        return ("--gpu", self.name, *size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The decision with everything that `fit` shows of it."""

    gathered: Gathered
    speed: Speed | None
    ways: tuple[Way, ...]

    @property
    def decided(self) -> Decided:
        return self.gathered.decided


def fit_for(
    work: Workplace, service: Service, *, host: Host | None = None, named: str = "", imagined: Imagined | None = None,
    claimed: float | None = None,
) -> Fitted:  # fmt: skip
    """Decide, then the roofline, and ways out where it does not fit. `named` is how `host` was named."""
    with naming(service):
        found = imagined.host() if imagined else host
    gathered = plan_for(work, service, host=found, count=imagined.count if imagined and imagined.count > 1 else None)
    place = imagined.words if imagined else ("--host", named) if named else ()
    door = Door(verb="fit", place=place, more_cards=imagined is not None)
    return Fitted(
        gathered=gathered,
        speed=_speed(gathered, claimed),
        ways=ways_of(gathered, door=door, other=imagined.host if imagined else None),
    )


def ways_of(
    gathered: Gathered, *, door: Door, plan: Plan | None = None, other: Callable[[int | None], Host] | None = None
) -> tuple[Way, ...]:
    """What would make `plan` fit, each decided anew on the same facts; nothing where it fits. `other` makes hosts."""
    plan = plan or gathered.plan
    if plan.verdict is Verdict.FITS:
        return ()

    again = again_on(host=gathered.host, model=plan.model, port=plan.port, count=gathered.count, other=other)
    return tuple(ways_out(plan, gathered.service, again=again, door=door))


def _speed(gathered: Gathered, claimed: float | None) -> Speed | None:
    decided = gathered.decided
    answer, question = decided.answer, decided.question
    row = of(decided.cards[0]) if decided.cards else None
    if not answer.weights or (row is None and claimed is None):
        return None
    return speed_of(
        question,
        weights=answer.weights,
        kv_per_token=answer.raw_bytes_per_token,
        expert_parameter=bytes_per_parameter(question.weights.scheme),
        bandwidth=row.bandwidth if row else None,
        claimed=claimed,
    )
