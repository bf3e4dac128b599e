"""Facts in, plan out: look at the machine, find the model, choose a port, decide. Installs and starts nothing."""

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.names import slug
from selfhost.deploy.choose import CHOSEN, DEFAULT_PORT, choose_model, choose_port
from selfhost.deploy.identity import refuse_other_model
from selfhost.deploy.state import State
from selfhost.deploy.wording import naming
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.detect import detect, with_links
from selfhost.hosts.placement import Placement, gate, is_usable, stable_id
from selfhost.models.hub import Hub
from selfhost.models.resolve import resolve
from selfhost.plan.decide import Decided, decide_all
from selfhost.plan.engine import CONTAINER, KUBERNETES, PROCESS, only_in_a_container
from selfhost.shapes.host import Host, Known, Unknown
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service

PROCESSES_ONLY = "HX008"
"""The gate's id for a card on which this version starts no process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that was learnt and decided before anything is touched. `hub` remembers what it was asked."""

    service: Service
    host: Host
    hub: Hub
    model: Model
    decided: Decided
    model_reason: str = ""
    placement: Placement | None = None
    """None where nothing is to be started: a plan for another machine."""
    count: int | None = None
    """So many equal cards were asked for."""

    @property
    def plan(self) -> Plan:
        return self.decided.plan


def gather(work: Workplace, service: Service) -> Gathered:
    """Everything that `up` would do for `service` here, decided and not done. Raises what the placement gate raises."""
    with naming(service):
        host = left_for(service, _look(work, service), taken=work.taken_cards)
        placement, refused = _gate(host, service)
        found = _decided(work, service, host=host, placement=placement, here=True)
        if refused is not None and found.plan.container is None:
            raise refused
        if found.plan.runtime == CONTAINER:
            raise only_in_a_container(found.plan)
        return found


def _gate(host: Host, service: Service) -> tuple[Placement | None, EnvironmentMissing | None]:
    """The gate, and its refusal of cards that no process is started on: a container may serve on them."""
    try:
        return gate(host, service.device), None
    except EnvironmentMissing as refused:
        if refused.id != PROCESSES_ONLY:
            raise
        return None, refused


def plan_for(work: Workplace, service: Service, *, host: Host | None = None, count: int | None = None) -> Gathered:
    """What would be decided here, or on `host`, which is another machine. Nothing has to be startable."""
    with naming(service):
        seen = left_for(service, host or _look(work, service), taken=work.taken_cards)
        return _decided(work, service, host=seen, placement=None, here=host is None, count=count)


def left_for(service: Service, host: Host, *, taken: Collection[str]) -> Host:
    """The machine without the cards that are `taken`, where the card is chosen for the service. Raises InputError."""
    if not taken or service.device not in (None, "auto"):
        return host
    kept = tuple(
        replace(card, partitions=tuple(part for part in card.partitions if part.uuid not in taken))
        for card in host.accelerators
        if stable_id(card) not in taken
    )
    if any(is_usable(card) for card in host.accelerators) and not any(is_usable(card) for card in kept):
        raise InputError(
            f"no card is left for `{service.name}`: those of this machine belong to other services of the file",
            why="A card belongs to one service, or to several that each say a share of it and together at most 1.",
            fix=(
                "give each a part that leaves enough, for instance:\nshare: 0.45",
                "or let this one run on the processor:\ndevices: cpu",
            ),
            id="CF098",
        )
    return replace(host, accelerators=kept)


def _look(work: Workplace, service: Service) -> Host:
    """With what is around the cards only where a container may serve: asking its engines takes a moment."""
    eyes = work.eyes or work.system
    disks = (str(work.paths.cache), str(work.paths.state))
    wide = service.runtime not in (None, PROCESS)
    host = detect(eyes, disk_paths=disks, wide=wide)
    if not wide and service.runtime is None and host.usable_accelerators and service.device != "cpu":
        host = detect(eyes, disk_paths=disks, wide=True)
    return with_links(host, eyes)


def _decided(
    work: Workplace, service: Service, *, host: Host, placement: Placement | None, here: bool, count: int | None = None
) -> Gathered:
    hub = Hub(work.env)
    reason = ""
    if not service.model:
        model, reason = choose_model(work, service, host, hub=hub, here=here)
        service = replace(service, model=model, origins={**service.origins, "model": CHOSEN})
    found = with_fingerprint(resolve(service.model, env=work.env, paths=work.paths, hub=hub))
    facts = as_fetched(found, service, hub)
    service = replace(service, name=service.name or slug(service.model.partition("@")[0]) or "model")
    port = service.port or next(port for port in range(DEFAULT_PORT, 65_536) if port not in work.taken_ports)
    if here:
        state = State(work.paths, service.name, say=work.say)
        refuse_other_model(state, service, facts)
        port = port if work.for_later else choose_port(work, service, state)
    decided = decide_all(host=host, model=facts, service=service, port=port, count=count)
    return Gathered(
        service=service, host=host, placement=placement, hub=hub, model=facts, decided=decided, model_reason=reason,
        count=count,
    )  # fmt: skip


def as_fetched(model: Model, service: Service, hub: Hub) -> Model:
    """What a package of this machine brings, a cluster has to ask the hub for; and what this machine has by the login
    of its user, the cluster gets by a token alone.
    """
    claimed = service.cluster is not None and service.cluster.existing_claim
    if service.runtime != KUBERNETES or claimed:
        return model
    if model.origin is Origin.HUB and not model.gated:
        closed = hub.closed(model.id)
        return replace(model, gated=isinstance(closed, Known) and closed.value)
    if model.origin is not Origin.EMBEDDED:
        return model
    return replace(model, origin=Origin.HUB, path="", revision=Unknown("the cluster's job asks the hub"))


def with_fingerprint(model: Model) -> Model:
    """A folder has no revision; names, sizes and times of its files stand for one, so that a change is noticed."""
    if model.origin is not Origin.FOLDER:
        return model
    total = hashlib.sha256()
    for entry in sorted(os.scandir(model.path), key=lambda entry: entry.name):
        if entry.is_file():
            seen = entry.stat()
            total.update(f"{entry.name}\0{seen.st_size}\0{seen.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return replace(
        model,
        path=str(Path(model.path).resolve()),
        revision=Known(f"files:{total.hexdigest()[:16]}", "names, sizes and times of the folder's files"),
    )
