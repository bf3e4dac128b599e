"""Services of one file on one machine: which cards and ports each leaves to the others, before any is started."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from selfhost.core.errors import SelfhostError
from selfhost.deploy.gather import plan_for
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.placement import is_usable, stable_id
from selfhost.plan.engine import KUBERNETES
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service
from selfhost.stack.sharing import fits_beside, of_what_is_left, refuse_overlap

_CHOOSES = (None, "auto")


def places_of(
    work: Workplace, services: Sequence[Service], meant: Collection[str], *, host: Host | None = None
) -> Mapping[str, Workplace]:
    """Where each of the `meant` services may be: not on the cards and ports of the others.

    Each is planned in the order of the file, those that name their cards first. Raises InputError for a card that two
    have without shares that add up; what else is wrong with a service that is not meant is told when it is.
    """
    elsewhere = frozenset(one.name for one in services if one.runtime == KUBERNETES)
    services = [one for one in services if one.name not in elsewhere]
    if elsewhere:  # a cluster shares nothing with this machine
        return {**dict.fromkeys(meant, work), **places_of(work, services, set(meant) - elsewhere, host=host)}
    if len(services) < 2:
        return dict.fromkeys(meant, work)
    quiet = replace(work, say=lambda _: None)  # what is said of a service is said in its turn
    asked = frozenset(one.port for one in services if one.port is not None)
    places: dict[str, Workplace] = {}
    plans: dict[str, Plan] = {}
    for one in sorted(services, key=lambda one: one.device in _CHOOSES):
        before = [other for other in services if other.name in plans]
        ports = asked | {plans[other.name].port for other in before}
        place = replace(quiet, taken_ports=ports - {one.port}, taken_cards=_not_for(one, before, plans))
        try:
            plans[one.name], cards = _planned(place, one, host=host)
        except SelfhostError:
            if one.name in meant:
                raise
            continue
        places[one.name] = replace(place, say=work.say, taken_cards=cards)
    known = [one for one in services if one.name in plans]
    _refuse(known, plans, meant)
    for finding in of_what_is_left(
        [one for one in known if one.name in meant],
        known,
        devices={name: _cards(plan) for name, plan in plans.items()},
        engines={name: plan.build.engine for name, plan in plans.items()},
    ):
        work.say(finding)
    return {name: places[name] for name in meant}


def _not_for(service: Service, others: Sequence[Service], plans: Mapping[str, Plan]) -> frozenset[str]:
    """Cards that a service whose card is chosen for it leaves alone; one that names its cards says so itself."""
    if service.device not in _CHOOSES:
        return frozenset()
    held: dict[str, list[Service]] = {}
    for other in others:
        for card in _cards(plans[other.name]):
            held.setdefault(card, []).append(other)
    return frozenset(card for card, users in held.items() if not fits_beside(service, users))


def _planned(work: Workplace, service: Service, *, host: Host | None) -> tuple[Plan, frozenset[str]]:
    """On the card that it has, as long as that is free for it: a second `up` moves nothing. With the cards it left."""
    former = State(work.paths, service.name, say=work.say) if host is None else None
    before, was = (former.plan(), former.service()) if former is not None else (None, None)
    found = plan_for(work, service, host=host)
    if before is None or was is None or service.device not in _CHOOSES or found.plan.device == before.device:
        return found.plan, work.taken_cards
    own = set(_cards(before))
    usable = {stable_id(card) for card in found.host.accelerators if is_usable(card)}
    if not own or not own <= usable or own & work.taken_cards or _wish(was) != _wish(service):
        return found.plan, work.taken_cards
    others = work.taken_cards | (usable - own)
    return plan_for(replace(work, taken_cards=others), service).plan, others


def _wish(service: Service) -> Service:
    return replace(service, origins={}, name="", port=None)


def _cards(plan: Plan) -> tuple[str, ...]:
    return () if plan.device == "cpu" else tuple(plan.device.split(","))


def _refuse(known: Sequence[Service], plans: Mapping[str, Plan], meant: Collection[str]) -> None:
    """Two that are both not meant may overlap: one of them runs, or will be refused in its turn."""
    of_meant = {card for name, plan in plans.items() if name in meant for card in _cards(plan)}
    cards = {name: tuple(card for card in _cards(plan) if card in of_meant) for name, plan in plans.items()}
    refuse_overlap(known, cards)
