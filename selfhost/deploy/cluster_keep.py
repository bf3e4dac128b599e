"""What runs in a cluster keeps its plan: other pods come and go, and a healthy engine is not made anew for that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from selfhost import __version__
from selfhost.deploy.gather import Gathered
from selfhost.deploy.state import State
from selfhost.plan.digest import digest_of
from selfhost.runtimes.cluster.release import INSTANCE
from selfhost.shapes.plan import Plan


def as_it_runs(found: Gathered, state: State, *, objects: Sequence[Mapping[str, Any]]) -> Gathered:
    """The former plan, where the same was asked for and its pod runs: what is free now was decided before it came.

    `objects` with this deployment's own pods among them.
    """
    former, asked = state.plan(), state.service()
    if former is None or former.cluster is None or asked is None or digest_of(former) == digest_of(found.plan):
        return found
    same = replace(asked, origins={}) == replace(found.service, origins={})
    if not same or not _of_the_same(former, found.plan) or state.lock().get("selfhost") != __version__:
        return found
    if not any(_is_ours(one, former) for one in objects):
        return found
    kept = replace(former, port=found.plan.port, port_explicit=found.plan.port_explicit)
    return replace(found, decided=replace(found.decided, plan=kept))


def _of_the_same(former: Plan, now: Plan) -> bool:
    return (former.build, former.model.id, former.model.revision, former.image) == (
        now.build,
        now.model.id,
        now.model.revision,
        now.image,
    )


def _is_ours(one: Mapping[str, Any], plan: Plan) -> bool:
    meta, cluster = one.get("metadata") or {}, plan.cluster
    return (
        one.get("kind") == "Pod"
        and cluster is not None
        and meta.get("namespace") == cluster.namespace
        and (meta.get("labels") or {}).get(INSTANCE) == cluster.release
        and not meta.get("deletionTimestamp")
        and (one.get("status") or {}).get("phase") == "Running"
    )
