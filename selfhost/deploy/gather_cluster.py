"""As deploy/gather.py, for a cluster whose objects were read: on which of its nodes the model fits, and the plan."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from selfhost.core.errors import EnvironmentMissing, SelfhostError
from selfhost.core.names import slug
from selfhost.deploy.choose import CHOSEN, DEFAULT_PORT, choose_model
from selfhost.deploy.gather import Gathered, as_fetched, plan_for, with_fingerprint
from selfhost.deploy.identity import refuse_other_model
from selfhost.deploy.state import State
from selfhost.deploy.wording import naming
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.cluster_choice import Wish, startable
from selfhost.hosts.cluster_facts import ClusterFacts, Group, facts_of
from selfhost.hosts.cluster_host import host_on
from selfhost.models.hub import Hub
from selfhost.models.hub_token import from_variables
from selfhost.models.resolve import resolve
from selfhost.plan.cluster.names import hub_secret, release_of
from selfhost.plan.decide import Decided, decide_all
from selfhost.plan.engine import KUBERNETES
from selfhost.plan.origin import SELFHOST
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.read import read_objects
from selfhost.runtimes.cluster.refusals import naming as refused_by
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes

_RANK = {Verdict.FITS: 0, Verdict.TOO_CLOSE: 1, Verdict.DOES_NOT_FIT: 2}
_LEFT = 0.9
"""Of a card that pods share in turns, what all of them together may take."""


def plan_in(work: Workplace, service: Service, *, host: Host | None = None, live: bool = False) -> Gathered:
    """As `plan_for`: on the nodes of a snapshot that has some, with `live` on those of the cluster, else for the cards
    of the machine. Raises what the cluster refuses.
    """
    if service.runtime != KUBERNETES:
        return plan_for(work, service, host=host)
    around = host.surroundings if host is not None else None
    if around is not None and around.nodes:
        return gather_on(work, service, (*around.nodes, *around.objects))
    if host is None and live:
        return gather_on(work, *_live(work, service))
    return plan_for(work, service, host=host)


def _live(work: Workplace, service: Service) -> tuple[Service, Iterable[Mapping[str, Any]]]:
    ask = service.cluster or ClusterAsk()
    cluster = Cluster.connect(ask.context, ask.namespace, env=work.env)
    with refused_by(cluster, "read the cluster"):
        read = read_objects(cluster)
    return replace(service, cluster=replace(ask, context=cluster.context, namespace=cluster.namespace)), read.objects


def gather_on(
    work: Workplace, service: Service, objects: Iterable[Mapping[str, Any]], *, here: bool = False
) -> Gathered:
    """The plan for the cluster of these objects. `here`: it is to be started, so it keeps to its deployment's state.

    Raises EnvironmentMissing where no node takes the pod, and what deciding raises.
    """
    service = replace(service, runtime=KUBERNETES, cluster=service.cluster or ClusterAsk())
    with naming(service):
        facts = facts_of(objects)
        places = _places(facts, service)
        hub, reason = Hub(work.env), ""
        if not service.model:
            roomiest = max(places, key=lambda place: _memory(place[1]))[1]
            model, reason = choose_model(work, service, roomiest, hub=hub, here=here)
            service = replace(service, model=model, origins={**service.origins, "model": CHOSEN})
        found_model = with_fingerprint(resolve(service.model, env=work.env, paths=work.paths, hub=hub))
        model_facts = as_fetched(found_model, service, hub)
        service = replace(service, name=service.name or slug(service.model.partition("@")[0]) or "model")
        if here:
            refuse_other_model(State(work.paths, service.name, say=work.say), service, model_facts)
            service = _with_token(work, service, model_facts)
        port = service.port or next(one for one in range(DEFAULT_PORT, 65_536) if one not in work.taken_ports)
        found: list[tuple[Host, Service, Decided]] = []
        refused: list[SelfhostError] = []
        for group, host in places:
            wish = _on_this(service, group)
            try:
                decided = decide_all(host=host, model=model_facts, service=wish, port=port)
                _refuse_small(decided, host)
                found.append((host, wish, decided))
            except SelfhostError as error:
                refused.append(error)
        if not found:
            raise refused[0]
        host, wish, decided = min(found, key=lambda one: _order(one[2]))
        return Gathered(
            service=wish, host=host, hub=hub, model=model_facts, decided=decided, model_reason=reason, placement=None
        )


def _with_token(work: Workplace, service: Service, model: Model) -> Service:
    """The Secret that `up` makes of a token in the user's own environment, where a gated model needs one: nothing else
    takes a token into the cluster.
    """
    ask = service.cluster or ClusterAsk()
    if not model.gated or ask.hub_token_secret or not from_variables(work.env):
        return service
    return replace(service, cluster=replace(ask, hub_token_secret=hub_secret(release_of(service.name))))


def _places(facts: ClusterFacts, service: Service) -> list[tuple[Group | None, Host]]:
    """The smallest cards first; a node alone where the processor was asked for."""
    device = (service.device or "auto").strip()
    if device.lower() == "cpu":
        return [(None, host_on(facts, None))]
    ask = service.cluster or ClusterAsk()
    only = "" if device.lower() == "auto" else device
    wish = Wish(tolerations=ask.tolerations, node_selector=ask.node_selector, only=only)
    return [(group, host_on(facts, group)) for group in startable(facts, wish)]


def _on_this(service: Service, group: Group | None) -> Service:
    """`--device` has named the group; of a card that is shared in turns, only a part is taken."""
    if group is None:
        return service
    found = replace(service, device=None)
    if group.kind.strategy == "time-slicing" and service.share is None:
        share = math.floor(_LEFT / group.kind.shared * 100) / 100
        return replace(found, share=share, origins={**service.origins, "share": SELFHOST})
    return found


def _refuse_small(decided: Decided, host: Host) -> None:
    """Raises EnvironmentMissing where the node has the card free, and not the memory of its own beside it."""
    cluster, free = decided.plan.cluster, host.memory.available
    cores = host.cpu.cores
    if cluster is not None and isinstance(cores, Known) and int(cluster.cpu) > cores.value:
        raise EnvironmentMissing(
            f"no node with {decided.plan.device_name} has {cluster.cpu} cores free",
            why=f"The one with the most has {cores.value:g} that no pod has asked for; a pod with less would starve.",
            fix=("end pods on these nodes, or ask for less of them",),
            id="PL098",
        )
    if cluster is None or not isinstance(free, Known) or cluster.memory <= free.value:
        return
    raise EnvironmentMissing(
        f"no node with {decided.plan.device_name} has {format_bytes(cluster.memory)} of its own memory free",
        why=f"The one with the most has {format_bytes(free.value)} that no pod has asked for; "
        f"{cluster.reasons['resources'].partition(';')[0]}.",
        fix=("end pods on these nodes, or take a smaller model",),
        id="PL098",
    )


def _order(decided: Decided) -> tuple[int, int, int]:
    """What fits on the fewest and smallest cards; of what does not, that on the largest."""
    plan = decided.plan
    size = sum(card.memory_total.value for card in decided.cards if isinstance(card.memory_total, Known))
    rank = _RANK[plan.verdict]
    return rank, plan.parallel.ranks if rank == 0 else 0, size if rank == 0 else -size


def _memory(host: Host) -> int:
    total = host.accelerators[0].memory_total if host.accelerators else host.memory.limit
    return total.value if isinstance(total, Known) else 0
