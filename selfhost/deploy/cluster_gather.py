"""As gather.py for a cluster that is there: its objects are read, and the plan is for what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from selfhost.core.names import slug
from selfhost.deploy.choose import DEFAULT_PORT, port_taken
from selfhost.deploy.cluster_keep import as_it_runs
from selfhost.deploy.gather import Gathered
from selfhost.deploy.gather_cluster import gather_on
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.runtimes.all import runtime_of
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.read import read_objects
from selfhost.runtimes.cluster.refusals import naming
from selfhost.runtimes.cluster.release import INSTANCE
from selfhost.runtimes.ports import free_port
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.event import Event
from selfhost.shapes.service import Service


def gather_live(work: Workplace, service: Service) -> Gathered:
    """What `up` would do for `service` in its cluster. Raises what the cluster refuses, and what deciding raises."""
    cluster = cluster_of(work, service)
    ask = replace(service.cluster or ClusterAsk(), context=cluster.context, namespace=cluster.namespace)
    wish = replace(service, cluster=ask)
    with naming(cluster, "read the cluster"):
        read = read_objects(cluster)
    for kind, why in read.unread.items():
        if kind in ("Node", "Pod"):
            work.sink.on(_untold(kind, why))
    place = replace(work, taken_ports=_taken(work, wish))
    named = service.name or slug(service.model.partition("@")[0])
    objects = without_own(read.objects, namespace=cluster.namespace, release=named)
    found = gather_on(place, wish, objects, here=True)
    release = found.plan.cluster.release if found.plan.cluster is not None else ""
    again = objects if release == named else without_own(read.objects, namespace=cluster.namespace, release=release)
    if len(again) != len(objects):
        found = gather_on(place, wish, again, here=True)
    return as_it_runs(found, State(work.paths, found.service.name, say=lambda _: None), objects=read.objects)


def without_own(objects: Sequence[Mapping[str, Any]], *, namespace: str, release: str) -> tuple[Mapping[str, Any], ...]:
    """What this deployment's own pods hold is free for it: they go before the new ones come."""
    own = {
        str(one["metadata"].get("name"))
        for one in objects
        if one.get("kind") == "Pod"
        and one["metadata"].get("namespace") == namespace
        and (one["metadata"].get("labels") or {}).get(INSTANCE) == release
    }

    def is_own(one: Mapping[str, Any]) -> bool:
        meta = one.get("metadata") or {}
        if meta.get("namespace") != namespace:
            return False
        owners = {str(each.get("name")) for each in meta.get("ownerReferences") or () if each.get("kind") == "Pod"}
        return meta.get("name") in own if one.get("kind") == "Pod" else bool(owners & own)

    return tuple(one for one in objects if not is_own(one))


def cluster_of(work: Workplace, service: Service) -> Cluster:
    """Raises SelfhostError for a kubeconfig that names no cluster."""
    ask = service.cluster or ClusterAsk()
    return Cluster.connect(ask.context, ask.namespace, env=work.env)


def _taken(work: Workplace, service: Service) -> frozenset[int]:
    """Ports of this machine that the forward does not take. Raises Busy for one that was asked for and is held."""
    if service.port is not None:
        name = service.name
        runtime = runtime_of("kubernetes", paths=work.paths, system=work.system)
        holder = runtime.port_holder(name, service.port)
        if holder is not None:
            raise port_taken(service, service.port, str(holder))
        return work.taken_ports
    before = State(work.paths, service.name, say=lambda _: None).plan() if service.name else None
    first = before.port if before is not None and before.cluster is not None else DEFAULT_PORT
    port = free_port(first, without=work.taken_ports)
    return work.taken_ports | frozenset(range(DEFAULT_PORT, port))


def _untold(kind: str, why: str) -> Event:
    what = "what nodes offer" if kind == "Node" else "what other pods hold"
    return Event(step="detect", state="warning", text=f"{what} can't be seen: {why}")
