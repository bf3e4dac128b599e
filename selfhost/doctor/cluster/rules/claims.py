"""Volumes that a pod waits for: no class, no claim, no provisioner, another place, another pod."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.mend import delete
from selfhost.doctor.cluster.pod import ended, healthy, scheduler_says, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.volumes import VOLUMES
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, at, cut, label, name, namespace, rows, text
from selfhost.doctor.cluster.volumes import class_of, classes, default_class, pending
from selfhost.shapes.finding import RunOn

CLASSES: Final = "https://kubernetes.io/docs/concepts/storage/storage-classes/"

_WAITS_FOR_POD: Final = ("WaitForFirstConsumer", "WaitForPodScheduled")
_NO_CLASS: Final = "no storage class is set"


def _said(cluster: Cluster, claim: Object) -> str:
    return next((cut(one.message, 240) for one in cluster.events(claim) if one.reason not in _WAITS_FOR_POD), "")


def _by(cluster: Cluster, claim: Object) -> str:
    users = [pod for pod in cluster.users_of(claim) if not ended(pod)]
    return f", which {label(users[0])} waits for" if users else ""


def _waited_for(cluster: Cluster, claim: Object) -> bool:
    """A claim that no pod uses may stay Pending; that is nobody's fault."""
    return pending(claim) and any(not healthy(pod) for pod in cluster.users_of(claim) if not ended(pod))


@cluster_rule("KX201", title="a claim names no class and the cluster has no default one",
              kinds=("PersistentVolumeClaim",), source=CLASSES)  # fmt: skip
def no_class(cluster: Cluster, claim: Object) -> Iterator[Said]:
    if not _waited_for(cluster, claim):
        return
    named = at(claim, "spec", "storageClassName")
    said = _said(cluster, claim)
    if named or _NO_CLASS not in said:
        return
    static = named == ""
    known = classes(cluster)
    yield Seen(
        title=f"{label(claim)} gets no volume: "
        + (
            "storageClassName is empty, and no volume lies ready"
            if static
            else "it names no class, and there is no default"
        ),
        evidence=f"{said or 'Pending'}; classes: {known or 'none'}{_by(cluster, claim)}",
        why="Layer: storage. "
        + (
            '`storageClassName: ""` asks for a volume that somebody made by hand; left out, it asks for the '
            "default class."
            if static
            else "A claim without a class gets the default one, and none is marked as that."
        ),
        fix=(
            *(
                (
                    (
                        "name one of the classes in the claim (its class cannot be changed later, so it is made "
                        f"anew): {known}"
                    ),
                )
                if known
                else ()
            ),
            *(
                (
                    (
                        f"or make one the default:\n{cluster.kubectl} patch storageclass {known.split(', ')[0]} -p "
                        '\'{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}\''
                    ),
                )
                if known
                else ("install a provisioner; k3s and kind bring local-path",)
            ),
        ),
        run_on=RunOn.HERE if known else RunOn.CLUSTER_ADMIN,
    )


@cluster_rule("KX208", title="the class that a claim names does not exist",
              kinds=("PersistentVolumeClaim",), source=CLASSES)  # fmt: skip
def class_missing(cluster: Cluster, claim: Object) -> Iterator[Said]:
    named = text(claim, "spec", "storageClassName")
    said = _said(cluster, claim)
    absent = bool(named) and cluster.knows("StorageClass") and cluster.get("StorageClass", "", named) is None
    if _waited_for(cluster, claim) and named and (absent or re.search(r"storageclass\S* \"[^\"]+\" not found", said)):
        known = classes(cluster)
        yield Seen(
            title=f"{label(claim)} names the class {named}, which the cluster does not have",
            evidence=f"{said or 'Pending'}; classes: {known or 'none'}{_by(cluster, claim)}",
            why="Layer: storage. No provisioner answers to that name.",
            fix=(
                (
                    f"name one that is there: {known or 'none is; install a provisioner'}\n"
                    f"{cluster.kubectl} get storageclass"
                ),
                delete(
                    cluster,
                    claim,
                    "a claim's class cannot be changed: delete it (it holds nothing yet) and apply again",
                ),
            ),
        )


@cluster_rule("KX202", title="a pod mounts a claim that does not exist", source=VOLUMES)
def no_claim(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if ended(pod) or healthy(pod):
        return
    said = scheduler_says(cluster, pod)
    named = re.findall(r'persistentvolumeclaim "([^"]+)" not found', said)
    for called, claim in cluster.claims_of(pod):
        if claim is None and (
            called in named or (unscheduled(pod) and cluster.knows("PersistentVolumeClaim") and not said)
        ):
            elsewhere = [namespace(one) for one in cluster.of("PersistentVolumeClaim") if name(one) == called]
            near = [name(one) for one in cluster.of("PersistentVolumeClaim", namespace(pod))]
            there = f"; there is one in namespace {elsewhere[0]}" if elsewhere else ""
            yield Seen(
                title=f"{label(pod)} mounts the claim {called}, which is not in namespace {namespace(pod)}",
                evidence=f"{cut(said, 200) or 'no such claim'}{there}; claims here: {', '.join(near) or 'none'}",
                why="Layer: storage. A pod sees claims of its own namespace only.",
                fix=(f"make the claim there, or name one of these:\n{cluster.in_(pod)} get pvc",),
            )


@cluster_rule("KX204", title="the provisioner does not make the volume", kinds=("PersistentVolumeClaim",),
              source=VOLUMES, after=("KX207",))  # fmt: skip
def not_provisioned(cluster: Cluster, claim: Object) -> Iterator[Said]:
    if not _waited_for(cluster, claim):
        return
    said = next((one for one in cluster.events(claim) if one.reason == "ExternalProvisioning"), None)
    found = class_of(cluster, claim)
    if said is None and not _is_left_alone(cluster, claim, found):
        return
    who = text(found, "provisioner") if found is not None else ""
    chosen = text(claim, "metadata", "annotations", "volume.kubernetes.io/selected-node")
    node = cluster.get("Node", "", chosen) if chosen else None
    tainted = _taints_in_the_way(cluster, node)
    runs = [one for one in cluster.of("Pod") if who and who.rpartition("/")[2] in name(one)]
    yield Seen(
        title=f"{label(claim)} waits for {who or 'its provisioner'}{f' on {chosen}' if chosen else ''}, which makes "
        "no volume",
        evidence=(
            f"{cut(said.message, 240)} (seen {said.count} times)" if said is not None else "Pending without an event"
        )
        + _by(cluster, claim)
        + (f"; taints of {chosen or 'every node'}: {', '.join(tainted)}" if tainted else ""),
        why="Layer: storage. "
        + (
            f"Provisioners of local disks start a helper pod on that node; one that does not tolerate {tainted[0]} is "
            "never scheduled, and no event of the claim says so."
            if tainted
            else "A provisioner that does not run, or may not, leaves the claim waiting without an error."
        ),
        fix=(
            (
                f"see whether it runs, and what it says:\n{cluster.kubectl} get pods -A | grep -i -E "
                f"'{who.rpartition('/')[2] or 'provisioner'}|csi|hostpath'"
            ),
            *(
                (
                    (
                        f"give the provisioner's pods a toleration for {tainted[0]}, or use a class that is not local "
                        "to the node"
                    ),
                )
                if tainted
                else ()
            ),
            *(
                (f"{label(runs[0])} is there: read its log:\n{cluster.in_(runs[0])} logs {name(runs[0])}",)
                if runs
                else ()
            ),
        ),
        run_on=RunOn.CLUSTER_ADMIN,
    )


def _is_left_alone(cluster: Cluster, claim: Object, found: Object | None) -> bool:
    """Whether its volume should be made by now, and nobody says anything of it."""
    if found is None or cluster.events(claim):
        return False
    chosen = text(claim, "metadata", "annotations", "volume.kubernetes.io/selected-node")
    return bool(chosen) or text(found, "volumeBindingMode") == "Immediate"


def _taints_in_the_way(cluster: Cluster, node: Object | None) -> list[str]:
    """Of the chosen node; where none is chosen, of every node if all have some."""
    nodes = [node] if node is not None else list(cluster.of("Node"))
    bars = [[text(one, "key") for one in rows(each, "spec", "taints")] for each in nodes]
    return bars[0] if bars and all(bars) else []


@cluster_rule("KX207", title="the provisioner refuses to make the volume", kinds=("PersistentVolumeClaim",),
              source=VOLUMES)  # fmt: skip
def refused(cluster: Cluster, claim: Object) -> Iterator[Said]:
    if not pending(claim):
        return
    for event in cluster.events(claim):
        if event.reason == "ProvisioningFailed" and _NO_CLASS not in event.message and "not found" not in event.message:
            yield Seen(
                title=f"{label(claim)} gets no volume: the provisioner refuses",
                evidence=f"{cut(event.message, 300)}{_by(cluster, claim)}",
                why="Layer: storage. The claim asks for what this class cannot do: a mode (ReadWriteMany on a disk), "
                "a size, a zone, or more than the account's quota.",
                fix=(
                    (
                        f"see what the class can do:\n{cluster.kubectl} describe storageclass "
                        f"{text(claim, 'spec', 'storageClassName') or name(default_class(cluster) or {})}"
                    ),
                ),
            )
            return
