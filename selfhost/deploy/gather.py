"""Facts in, plan out: look at the machine, find the model, choose a port, decide. Installs and starts nothing."""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from selfhost.core.names import slug
from selfhost.deploy.choose import CHOSEN, choose_model, choose_port
from selfhost.deploy.identity import refuse_other_model
from selfhost.deploy.state import State
from selfhost.deploy.wording import naming
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.detect import detect
from selfhost.hosts.placement import Placement, gate
from selfhost.models.hub import Hub
from selfhost.models.resolve import resolve
from selfhost.plan.decide import decide
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that was learnt and decided before anything is touched. `hub` remembers what it was asked."""

    service: Service
    host: Host
    placement: Placement
    hub: Hub
    model: Model
    plan: Plan
    model_reason: str = ""


def plan_for(work: Workplace, service: Service) -> Gathered:
    """Everything that `up` would do for `service`, decided and not done."""
    with naming(service):
        return _plan_for(work, service)


def _plan_for(work: Workplace, service: Service) -> Gathered:
    host = detect(work.system, disk_paths=(str(work.paths.cache), str(work.paths.state)))
    placement = gate(host, service.device)
    hub = Hub(work.env)
    reason = ""
    if not service.model:
        model, reason = choose_model(work, service, host, placement, hub=hub)
        service = replace(service, model=model, origins={**service.origins, "model": CHOSEN})
    facts = with_fingerprint(resolve(service.model, env=work.env, paths=work.paths, hub=hub))
    service = replace(service, name=service.name or slug(service.model.partition("@")[0]) or "model")
    state = State(work.paths, service.name, say=work.say)
    refuse_other_model(state, service, facts)
    port = choose_port(work, service, state)
    plan = decide(host=host, model=facts, service=service, port=port)
    return Gathered(
        service=service, host=host, placement=placement, hub=hub, model=facts, plan=plan, model_reason=reason
    )


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
