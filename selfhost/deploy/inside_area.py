"""Containers of ours as doctor sees them: an area beside those of the machine."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from selfhost.core.errors import InputError, SelfhostError
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.deploy.again import again
from selfhost.deploy.inside import Card, Fate, judge, planned
from selfhost.deploy.inside_words import Told, by_cdi, findings
from selfhost.deploy.look_inside import look_inside
from selfhost.deploy.runtime import of_plan
from selfhost.deploy.state import State
from selfhost.doctor.area import Area
from selfhost.doctor.granted import container_of
from selfhost.doctor.inspected import inspected
from selfhost.engines.names import shown
from selfhost.plan.digest import digest_of
from selfhost.runtimes.base import Seen
from selfhost.runtimes.containers import container_name
from selfhost.runtimes.deployments import names
from selfhost.shapes.finding import Finding, RunOn
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan
from selfhost.visibility.lint import lint

_RELOAD = "DV028"


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A deployment whose engine runs in a container. `again` starts it, empty when nobody knows how any more."""

    plan: Plan
    seen: Seen
    again: str

    @property
    def engine(self) -> str:
        return self.plan.container.engine if self.plan.container is not None else ""

    @property
    def target(self) -> str:
        """As `--inside` takes it."""
        return f"{self.engine}:{container_name(self.plan.name)}"

    def told(self, outside: Host) -> Told:
        return Told(plan=self.plan, outside=outside, again=self.again)


def own_container(paths: Paths, system: LocalSystem, word: str, *, say: Callable[[Finding], None]) -> Own | None:
    """The deployment that `word` names, by its own name or its container's; None for a container that is not ours.

    Raises InputError for a deployment that runs as a process.
    """
    kind, _, bare = word.rpartition(":")
    for name in names(paths):
        if bare not in ((container_name(name),) if kind else (name, container_name(name))):
            continue
        own = _own(paths, system, name, say=say)
        if own is not None and kind in ("", own.engine):
            return own
        if own is None and bare == name:
            raise InputError(
                f"{name} runs as a process, which has no inside",
                why="It uses what this machine's user may use.",
                fix=(
                    "look at the machine:\nselfhost doctor",
                    f"or at a container that has the same name:\nselfhost doctor --inside docker:{name}",
                ),
                id="CF105",
            )
    return None


def _own(paths: Paths, system: LocalSystem, name: str, *, say: Callable[[Finding], None]) -> Own | None:
    state = State(paths, name, say=say)
    plan = state.plan()
    if plan is None or plan.container is None:
        return None
    return Own(plan=plan, seen=of_plan(plan, paths=paths, system=system).inspect(name), again=again(state))


def deployments(paths: Paths, system: LocalSystem, outside: Host, *, say: Callable[[Finding], None]) -> Area | None:
    """Every container of ours that has cards; None where there is none."""
    calm, found, unknown = [], [], []
    for name in names(paths):
        try:
            own = _own(paths, system, name, say=say)
        except SelfhostError as error:
            unknown.append(f"{name}: {error.what}")
            continue
        looked = look_inside(own.plan, own.seen, system, outside=outside) if own is not None else None
        if own is None or looked is None:
            continue
        found += [*findings(looked.cards, own.told(outside)), *at_risk(own, system, outside)]
        calm += [f"{name}: its cards are there"] if all(card.fate is Fate.THERE for card in looked.cards) else []
        unknown += _unknown(own, looked.cards)
    if not (calm or found or unknown):
        return None
    return Area(name="deployments", calm="; ".join(calm), findings=tuple(found), unknowns=tuple(unknown))


def describe(own: Own) -> str:
    """Which plan stands behind the container, in a line."""
    plan = own.plan
    way = plan.container.injection.way if plan.container is not None else ""
    on = f"{plan.device_name} by {way}" if planned(plan) else "the processor"
    return f"{plan.name}: {shown(plan.build.engine)} {plan.build.version} on {on}, plan {digest_of(plan)[:12]}"


def deployment(own: Own, system: LocalSystem, outside: Host, inside: Host | str) -> tuple[Area, tuple[Card, ...]]:
    """The one whose container is looked into, and what became of each of its cards."""
    cards = judge(own.plan, outside, inside, own.seen)
    fates = "; ".join(dict.fromkeys(f"{card.name}: {card.fate.value}" for card in cards))
    area = Area(
        name="deployment",
        calm=fates or "no card, so none to lose",
        findings=(*findings(cards, own.told(outside)), *at_risk(own, system, outside)),
        unknowns=tuple(_unknown(own, cards)),
    )
    return area, cards


def at_risk(own: Own, system: LocalSystem, outside: Host) -> Iterator[Finding]:
    """Cards that the next `systemctl daemon-reload` would take: by the rule for files, asked of what runs."""
    if not (own.seen.alive and planned(own.plan)):
        return
    shown_by_engine = inspected(system, container_name(own.plan.name), (own.engine,))
    if shown_by_engine is None:
        return
    for finding in lint(container_of(shown_by_engine), outside):
        if finding.id == _RELOAD:
            yield replace(finding, fix=(by_cdi(own.told(outside)),), run_on=RunOn.HERE)


def _unknown(own: Own, cards: Iterable[Card]) -> list[str]:
    """Of a container that does not run nothing has to be known."""
    if not own.seen.alive:
        return []
    return list(
        dict.fromkeys(f"{own.plan.name}: {card.name}: {card.said}" for card in cards if card.fate is Fate.UNKNOWN)
    )
