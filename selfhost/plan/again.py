"""Deciding once more with one thing changed, on the same facts."""

from collections.abc import Callable

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.plan.decide import decide_all
from selfhost.plan.ways_out import Again, Wish
from selfhost.shapes.host import Host
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan


def again_on(
    *, host: Host, model: Model, port: int, count: int | None = None, other: Callable[[int | None], Host] | None = None
) -> Again:
    """`count` cards were asked for; `other` makes the host of a wish for more of them."""

    def again(wish: Wish) -> Plan | None:
        machine = other(wish.count) if other and wish.count else host
        cards = wish.count or (count if wish.model is None else None)
        try:
            return decide_all(
                host=machine, model=wish.model or model, service=wish.service, port=port, count=cards
            ).plan
        except (InputError, EnvironmentMissing):  # not possible on this machine, so no way out
            return None

    return again
