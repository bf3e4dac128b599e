"""Looking into the container of a deployment: the machine around it, and what the process inside can use."""

from dataclasses import dataclass

from selfhost.core import far_doors
from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System
from selfhost.deploy.inside import Card, Fate, judge, planned, with_kernel_log
from selfhost.hosts.detect import detect
from selfhost.runtimes.base import Seen
from selfhost.runtimes.containers import container_name
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan

_LOG_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    outside: Host
    inside: Host | str
    """The container, or the reason why nobody could look into it."""
    cards: tuple[Card, ...]

    @property
    def lost(self) -> tuple[Card, ...]:
        return tuple(card for card in self.cards if card.lost)


def look_inside(plan: Plan, seen: Seen, system: System, *, outside: Host | None = None) -> Looked | None:
    """None where there is no card to lose: a process, or a container on the processor. `outside` when it is known."""
    if plan.container is None or not planned(plan):
        return None
    around = outside or detect(system)
    inside = _inside(plan, system) if seen.alive else "the container does not run"
    cards = judge(plan, around, inside, seen)
    if any(card.fate is Fate.OFF_THE_BUS for card in cards):
        cards = with_kernel_log(cards, system.run(("dmesg",), timeout_s=_LOG_TIMEOUT_S).stdout)
    return Looked(outside=around, inside=inside, cards=cards)


def door(plan: Plan) -> far_doors.Door:
    """Raises ValueError for a plan without a container: our mistake."""
    if plan.container is None:
        raise ValueError("a process has no inside")
    return far_doors.container(plan.container.engine, container_name(plan.name))


def _inside(plan: Plan, system: System) -> Host | str:
    try:
        eyes = far_doors.through(door(plan), system.env)
    except EnvironmentMissing as refused:
        return refused.what
    try:
        return detect(eyes)
    except (EnvironmentMissing, OSError) as broken:
        return str(broken)
    finally:
        eyes.close()
