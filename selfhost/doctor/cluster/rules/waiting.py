"""Pods that wait and no node is to blame: gates, a scheduler that is not there, other pods; or that cannot be told."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.fit import fits
from selfhost.doctor.cluster.mend import patch
from selfhost.doctor.cluster.pod import scheduler_says, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, Unsure, cluster_rule
from selfhost.doctor.cluster.rules.scheduling import AFFINITY
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    condition,
    cut,
    label,
    labels,
    name,
    namespace,
    rows,
    text,
    texts,
)

_OTHER: Final = {
    r"didn't match pod anti-affinity rules|satisfy existing pods anti-affinity": "another pod keeps it off by an "
    "anti-affinity rule; with as many replicas as nodes, the one that comes during an update finds no node",
    r"didn't match pod affinity rules": "it wants to be beside a pod that runs on none of these nodes",
    r"topology spread constraints": "its topologySpreadConstraints with whenUnsatisfiable: DoNotSchedule allow "
    "none of them",
    r"free ports for the requested pod ports": "another pod has its hostPort, or both use hostNetwork",
    r"exceed max volume count": "as many volumes are attached as the node takes",
    r"Too many pods": "the node has as many pods as it takes",
}


@cluster_rule(
    "KX009",
    title="a scheduling gate holds the pod back",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/",
)
def gated(cluster: Cluster, pod: Object) -> Iterator[Said]:
    gates = [text(one, "name") for one in rows(pod, "spec", "schedulingGates")]
    waiting = text(condition(pod, "PodScheduled"), "reason") == "SchedulingGated"
    if not unscheduled(pod) or not (gates or waiting):
        return
    shown = ", ".join(gates) or "not named"
    kueue = any(gate.startswith("kueue.x-k8s.io/") for gate in gates)
    queue = labels(pod).get("kueue.x-k8s.io/queue-name", "")
    evidence = f"PodScheduled: SchedulingGated; gates: {shown}"
    fix: tuple[str, ...]
    if not kueue:
        fix = (f"see which controller should take the gate away:\n{cluster.in_(pod)} describe pod {name(pod)}",)
        why = "Layer: admission. The scheduler passes it by until whoever set the gate takes it away; no event says so."
    elif not queue:
        why = "Layer: Kueue. Only a pod with a queue's name is ever admitted: without it the gate stays for ever."
        fix = (
            patch_label(cluster, pod, "kueue.x-k8s.io/queue-name", _queues(cluster, pod)),
            f"see which queues there are:\n{cluster.in_(pod)} get localqueues",
        )
    else:
        why = (
            f"Layer: Kueue. The queue {queue} has not admitted it yet: its quota is used, or the queue does not exist."
        )
        said = _workload(cluster, pod)
        evidence += f"; workload: {said}" if said else f"; queue {queue}"
        fix = (
            f"see what it waits for:\n{cluster.in_(pod)} get workloads\n{cluster.in_(pod)} describe localqueue {queue}",
        )
    yield Seen(title=f"{label(pod)} is held back by a scheduling gate: {shown}", evidence=evidence, why=why, fix=fix)


def _queues(cluster: Cluster, pod: Object) -> str:
    return next((name(one) for one in cluster.of("LocalQueue", namespace(pod))), "QUEUE")


def patch_label(cluster: Cluster, pod: Object, key: str, value: str) -> str:
    for owner in cluster.owners(pod):
        if text(owner, "kind") in ("Deployment", "StatefulSet", "Job"):
            return (
                f"name the queue:\n{cluster.in_(pod)} label {text(owner, 'kind').lower()} {name(owner)} {key}={value}"
            )
    return f"name the queue when the pod is made: label {key}: {value}"


def _workload(cluster: Cluster, pod: Object) -> str:
    owned = {name(one) for one in (pod, *cluster.owners(pod))}
    for one in cluster.of("Workload", namespace(pod)):
        if any(text(reference, "name") in owned for reference in rows(one, "metadata", "ownerReferences")):
            said = [
                text(found, "message") for found in rows(one, "status", "conditions") if found.get("status") == "False"
            ]
            return cut(said[0], 200) if said else ""
    return ""


@cluster_rule("KX015", title="other pods, ports or volumes keep a pod off every node", source=AFFINITY)
def crowded(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    best = fits(cluster, pod)
    if not said or (best and best[0].misses):
        return
    for pattern, meaning in _OTHER.items():
        match = re.search(pattern, said)
        if match:
            yield Seen(
                title=f"{label(pod)} fits by its cards, but {meaning.partition(';')[0]}",
                evidence=f"scheduler: {cut(said, 300)}",
                why=f"Layer: scheduler. {meaning[0].upper()}{meaning[1:]}.",
                fix=(f"look at its affinity, spread and ports:\n{cluster.in_(pod)} get pod {name(pod)} -o yaml",),
            )


@cluster_rule(
    "KX017",
    title="no scheduler looks at the pod",
    source="https://kubernetes.io/docs/tasks/extend-kubernetes/configure-multiple-schedulers/",
)
def unseen(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if not unscheduled(pod) or condition(pod, "PodScheduled") or rows(pod, "spec", "schedulingGates"):
        return
    if (
        _made_for(cluster, pod)
        or scheduler_says(cluster, pod)
        or any(one.reason == "FailedResourceClaimCreation" for one in cluster.events(pod))
    ):
        return
    who = text(pod, "spec", "schedulerName") or "default-scheduler"
    if who == "default-scheduler":
        yield Unsure(
            f"{label(pod)} is Pending, and neither a condition nor an event says why: events are kept for an hour, "
            "and a scheduler that does not run says nothing"
        )
        return
    runs = [one for one in cluster.of("Pod") if who in name(one)]
    if runs:
        yield Unsure(f"{label(pod)} waits for the scheduler {who}, which has said nothing of it so far")
        return
    yield Seen(
        title=f"{label(pod)} waits for a scheduler called {who}, and nothing says that one runs",
        evidence=f"schedulerName: {who}; no PodScheduled condition; no event",
        why="Layer: scheduler. Only the scheduler of that name binds it; the default one passes it by.",
        fix=(
            f"see whether it runs:\n{cluster.kubectl} get pods -A | grep {who}",
            patch(cluster, pod, "or leave it to the default", {"schedulerName": "default-scheduler"}),
        ),
    )


@cluster_rule("KX014", title="the scheduler finds no node", source=AFFINITY, after=("KX00", "KX01", "KX2", "KX5"))
def in_its_words(cluster: Cluster, pod: Object) -> Iterator[Said]:
    """Where nodes are not known, or the objects say another thing than the scheduler said."""
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    if not said:
        return
    found = fits(cluster, pod)
    if found and found[0].misses:
        return
    if found:
        known = any(re.search(pattern, said) for pattern in _OTHER) or re.search(
            r"[Pp]ersistentVolumeClaim|claim|volume|device class", said
        )
        if "Pod" in cluster.unread and "Insufficient" in said:
            yield Unsure(
                f"{label(pod)}: no node has enough free, and who holds it is unknown ({cluster.unread['Pod']}); the "
                f"scheduler said: {cut(said, 160)}"
            )
        elif not known and _says_more(cluster, pod):
            fitting = (
                f"By these objects node {found[0].name} fits, so what keeps the pod off is not among them: pods that "
                "hold the rest, or a rule of the scheduler's own. "
            )
            yield _in_words(cluster, pod, said, fitting)
        elif not known:
            yield Unsure(
                f"{label(pod)}: by these objects node {found[0].name} fits, and the scheduler said: {cut(said, 200)}; "
                "it may have changed since"
            )
        return
    yield _in_words(
        cluster, pod, said, "The nodes are not among these objects, so which of them comes closest is unknown. "
    )


def _says_more(cluster: Cluster, pod: Object) -> bool:
    """Than these objects can: no pod on any node was saved, or another scheduler has rules of its own."""
    other = text(pod, "spec", "schedulerName") not in ("", "default-scheduler")
    return other or not any(text(one, "spec", "nodeName") for one in cluster.of("Pod"))


def _in_words(cluster: Cluster, pod: Object, said: str, why: str) -> Seen:
    reasons = list(_reasons(said))
    return Seen(
        title=f"{label(pod)} is scheduled nowhere: {reasons[0] if reasons else cut(said, 120)}",
        evidence=f"scheduler: {cut(said, 400)}",
        why=f"Layer: scheduler. {why}" + " ".join(_explained(said)),
        fix=(
            f"put nodes and all pods beside it:\n{cluster.kubectl} get nodes,pods -A -o json",
            f"or ask the cluster itself:\nselfhost doctor pod/{name(pod)} --namespace {namespace(pod) or 'default'}",
        ),
    )


def _made_for(cluster: Cluster, pod: Object) -> bool:
    """A node was chosen for it, and a volume is being made there: the scheduler waits without a word."""
    return any(
        claim is not None and texts(claim, "metadata", "annotations").get("volume.kubernetes.io/selected-node")
        for _, claim in cluster.claims_of(pod)
    )


def _reasons(said: str) -> Iterator[str]:
    body = said.partition("available:")[2].partition("preemption:")[0] or said
    for one in re.split(r",\s*(?=\d+ )", body):
        words = one.strip(" .,")
        if words and not words.startswith("no new claims"):
            yield words


def _explained(said: str) -> Iterator[str]:
    if "untolerated taint" in said or "had taint" in said:
        yield "A taint is named: nodes with the cards are often the tainted ones, and `Insufficient` counts the others."
    if re.search(r"Insufficient [\w.-]+/", said):
        yield "`Insufficient` of a device: no node has it, or all of it is held, or it is called otherwise."
    if "affinity/selector" in said or "node selector" in said:
        yield "A selector or affinity term asks for a label that no node has."
