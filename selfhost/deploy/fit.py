"""Whether a model fits: on this machine, on one that was looked at, or on cards that nobody here owns."""

from collections.abc import Callable
from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.deploy.gather import Gathered, plan_for
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.cards import of
from selfhost.hosts.imagined import host_with
from selfhost.plan.claims import Speed, speed_of
from selfhost.plan.decide import Decided, decide_all
from selfhost.plan.memory.weights import bytes_per_parameter
from selfhost.plan.ways_out import Again, Way, Wish, ways_out
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan, Verdict
from selfhost.shapes.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """Cards that nobody looked at. `memory` in bytes overrides the table."""

    name: str
    count: int = 1
    memory: int | None = None

    def host(self, count: int | None = None) -> Host:
        return host_with(self.name, count=count or self.count, memory=self.memory)


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
    work: Workplace, service: Service, *, host: Host | None = None, imagined: Imagined | None = None,
    claimed: float | None = None,
) -> Fitted:  # fmt: skip
    """Decide, then the roofline, and ways out where it does not fit. Starts and fetches nothing."""
    found = imagined.host() if imagined else host
    gathered = plan_for(work, service, host=found)
    ways = ways_out_of(gathered, verb="fit", imagined=imagined) if gathered.plan.verdict is not Verdict.FITS else ()
    return Fitted(gathered=gathered, speed=_speed(gathered, claimed), ways=ways)


def ways_out_of(gathered: Gathered, *, verb: str, imagined: Imagined | None = None) -> tuple[Way, ...]:
    """What would make it fit; each is decided anew on the same facts."""
    again = again_with(gathered, imagined.host if imagined else None)
    found = ways_out(gathered.plan, gathered.service, again=again, verb=verb, more_cards=imagined is not None)
    return tuple(found)


def again_with(gathered: Gathered, other: Callable[[int | None], Host] | None) -> Again:
    """Decide once more; a wish that is impossible on this machine is no way out, and None."""

    def again(wish: Wish) -> Plan | None:
        host = other(wish.count) if other and wish.count else gathered.host
        try:
            return decide_all(
                host=host, model=wish.model or gathered.model, service=wish.service, port=gathered.plan.port
            ).plan
        except (InputError, EnvironmentMissing):
            return None

    return again


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
