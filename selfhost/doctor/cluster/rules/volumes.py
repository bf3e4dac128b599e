"""Volumes that are there, and in another place or in other hands."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.fit import fits, volume_misses
from selfhost.doctor.cluster.mend import delete
from selfhost.doctor.cluster.pod import bound, ended, healthy, scheduler_says, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, labels, name, namespace, text
from selfhost.doctor.cluster.volumes import modes, volume_of

VOLUMES: Final = "https://kubernetes.io/docs/concepts/storage/persistent-volumes/"
_HOLDER: Final = re.compile(
    r"[Vv]olume is already (?:used by pod\(s\) (?P<pods>[^\"]+)|exclusively attached to one node)"
)


@cluster_rule(
    "KX205",
    title="the volume lies where the cards are not",
    source="https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode",
)
def elsewhere(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    best = next(iter(fits(cluster, pod)), None) if unscheduled(pod) else None
    by_objects = best.of("volume") if best is not None else ()
    if not by_objects and "volume node affinity conflict" not in said:
        return
    claims = [one.key for one in by_objects] or [called for called, _ in cluster.claims_of(pod)]
    called = claims[0] if claims else "?"
    claim = cluster.get("PersistentVolumeClaim", namespace(pod), called)
    volume = volume_of(cluster, claim)
    lies = [name(node) for node in cluster.of("Node") if volume is not None and not volume_misses(volume, node)]
    where = f"on {', '.join(lies[:3])}" if lies else "in another place"
    node = f"{best.name}" if best is not None else "the node with the cards"
    seen = [*(one.text for one in by_objects), *([f"scheduler: {cut(said, 200)}"] if said else [])]
    yield Seen(
        title=f"the volume of claim {called} lies {where}, and {label(pod)} would fit on {node}",
        evidence="; ".join(seen),
        why="Layer: storage. A local or zonal volume is bound to its place from the moment it is made; with the "
        "binding mode Immediate that is before anybody knows where the pod will be.",
        fix=(
            (
                "if it holds only weights that can be fetched again, let it be made anew beside the cards, by a "
                f"class with volumeBindingMode: WaitForFirstConsumer:\n{cluster.in_(pod)} delete pvc {called}"
            ),
            "or use a class whose volumes are reached from every node (ReadWriteMany)",
        ),
    )


@cluster_rule(
    "KX206",
    title="a volume for one node is in use on another",
    source="https://github.com/kserve/kserve/issues/3409",
    after=("KX212",),
)
def attached_twice(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if healthy(pod) or ended(pod):
        return
    event = next((one for one in cluster.events(pod) if "Multi-Attach error" in one.message), None)
    if event is None:
        return
    match = _HOLDER.search(event.message)
    here = text(pod, "spec", "nodeName")
    shared = {called for called, _ in cluster.claims_of(pod)}
    users = [
        one
        for one in cluster.of("Pod", namespace(pod))
        if one is not pod and bound(one) and not ended(one) and text(one, "spec", "nodeName") != here
        and shared & {called for called, _ in cluster.claims_of(one)}
    ]  # fmt: skip
    named = (match["pods"] or "").strip(" .") if match else ""
    who = named or ", ".join(name(one) for one in users) or "a pod on another node"
    holder = next(
        (one for one in cluster.of("Pod", namespace(pod)) if name(one) == who.split(", ")[0]),
        users[0] if users else None,
    )
    there = text(holder, "spec", "nodeName") if holder is not None else ""
    helper = (
        holder is not None
        and labels(holder).get("app.kubernetes.io/component") != "engine"
        and cluster.root(holder) is holder
    )
    yield Seen(
        title=f"{label(pod)} waits on {here}: its volume is held by {who}{f' on {there}' if there else ''}",
        evidence=cut(event.message, 300),
        why="Layer: storage. A ReadWriteOnce volume is on one node at a time: two pods on one node work, on two "
        "nodes they do "
        f"not.{' The holder is no engine: a helper that filled the volume and stayed.' if helper else ''}",
        fix=(
            *((delete(cluster, holder, f"if {who} is done with it, delete it"),) if holder is not None else ()),
            "or use a claim with ReadWriteMany, or one claim for each model",
        ),
    )


@cluster_rule("KX213", title="a ReadWriteOncePod claim is in use by another pod", source=VOLUMES)
def once_only(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    if "ReadWriteOncePod" not in said:
        return
    for called, claim in cluster.claims_of(pod):
        if claim is not None and "ReadWriteOncePod" in modes(claim):
            users = [one for one in cluster.users_of(claim) if one is not pod and not ended(one)]
            yield Seen(
                title=f"{label(pod)} waits for the claim {called}: only one pod may use it, and "
                f"{name(users[0]) if users else 'another'} does",
                evidence=f"scheduler: {cut(said, 240)}",
                why="Layer: storage. ReadWriteOncePod lets one pod in the whole cluster use the volume.",
                fix=(*((delete(cluster, users[0], "when that one may go"),) if users else ()), "or use ReadWriteOnce"),
            )
