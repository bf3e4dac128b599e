"""Services of one file on one machine: what only the chosen cards show, before any of them is started."""

from collections.abc import Sequence

from selfhost.deploy.gather import plan_for
from selfhost.deploy.workplace import Workplace
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service
from selfhost.stack.sharing import refuse_overlap


def refuse_shared_cards(work: Workplace, services: Sequence[Service], *, host: Host | None = None) -> None:
    """Plan every service, and raise InputError for a card that two have without shares that add up."""
    if len(services) < 2:
        return
    refuse_overlap(services, {one.name: _cards(plan_for(work, one, host=host).plan) for one in services})


def _cards(plan: Plan) -> tuple[str, ...]:
    return () if plan.device == "cpu" else tuple(plan.device.split(","))
