"""Nodes as a whole, and pods that are placed on one that says nothing."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.holders import allocatable
from selfhost.doctor.cluster.pod import bound, containers, ended, going, healthy, is_card, phase
from selfhost.doctor.cluster.rule import Said, Seen, Unsure, cluster_rule
from selfhost.doctor.cluster.rules.probes import seconds
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, condition, cut, holds, label, name, namespace, part, text
from selfhost.shapes.finding import RunOn, Severity


@cluster_rule("KX024", title="a node is not ready", kinds=("Node",), severity=Severity.WARNING, after=("KX010",),
              source="https://kubernetes.io/docs/concepts/architecture/nodes/#condition")  # fmt: skip
def not_ready(cluster: Cluster, node: Object) -> Iterator[Said]:
    ready = condition(node, "Ready")
    if text(ready, "status") not in ("False", "Unknown"):
        return
    pods = [pod for pod in cluster.of("Pod") if text(pod, "spec", "nodeName") == name(node) and not ended(pod)]
    cards = [f"{count} {resource}" for resource, count in allocatable(node).items() if is_card(resource) and count]
    yield Seen(
        title=f"node {name(node)} is not ready{f', with {cards[0]}' if cards else ''}",
        evidence=f"Ready {text(ready, 'status')}, {text(ready, 'reason')}: {cut(text(ready, 'message'), 200)}; "
        f"{len(pods)} pods on it",
        why="Layer: kubelet. It has stopped reporting, or reports a fault of the container engine or the network.",
        fix=(
            f"see what it said last:\n{cluster.kubectl} describe node {name(node)}",
            "on the node:\nsudo systemctl status kubelet",
        ),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@cluster_rule("KX019", title="a pod is placed and its node says nothing of it", kinds=("Pod",),
              severity=Severity.WARNING,
              source="https://kubernetes.io/docs/concepts/architecture/nodes/")  # fmt: skip
def silent(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if phase(pod) not in ("Pending", "") or not bound(pod) or going(pod) or any(one.status for one in containers(pod)):
        return
    node = cluster.node_of(pod)
    called = text(pod, "spec", "nodeName")
    if node is None and cluster.knows("Node"):
        yield Seen(
            title=f"{label(pod)} is placed on node {called}, which does not exist",
            evidence=f"nodes: {', '.join(name(one) for one in cluster.of('Node')[:6])}",
            why="Layer: kubelet. Nobody is there to start it; a nodeName written by hand is bound unseen.",
            fix=("leave nodeName out of the pod, and let the scheduler choose",),
            severity=Severity.ERROR,
        )
    elif node is not None and text(condition(node, "Ready"), "status") in ("False", "Unknown"):
        yield Seen(
            title=f"{label(pod)} is placed on node {called}, which is not ready",
            evidence=f"Ready {text(condition(node, 'Ready'), 'status')}: "
            f"{cut(text(condition(node, 'Ready'), 'message'), 200)}",
            why="Layer: kubelet. It starts nothing before it is back; after five minutes the pod is made elsewhere.",
            fix=(f"see what it said last:\n{cluster.kubectl} describe node {called}",),
            run_on=RunOn.CLUSTER_ADMIN,
            severity=Severity.ERROR,
        )
    elif not [one for one in cluster.events(pod) if one.reason not in ("Scheduled", "FailedScheduling")]:
        yield Unsure(f"{label(pod)} is placed on {called}, and the kubelet there has said nothing of it yet")


@cluster_rule(
    "KX025",
    title="an engine still loads",
    severity=Severity.INFO,
    source="https://kubernetes.io/docs/concepts/workloads/pods/probes/",
)
def loading(_: Cluster, pod: Object) -> Iterator[Said]:
    """Normal: it runs, is not ready, and its startup probe still waits."""
    if phase(pod) != "Running" or holds(pod, "Ready") or going(pod):
        return
    for one in containers(pod):
        probe = part(one.spec, "startupProbe")
        if one.init or not one.running or one.restarts or one.status.get("started") is not False or not probe:
            continue
        yield Seen(
            title=f"{label(pod)} still starts: its engine has not opened its port",
            evidence=f"running since {text(one.status, 'state', 'running', 'startedAt')}; startup budget "
            f"{seconds(probe)} s",
            why="Normal while the model is fetched, loaded and compiled. It is ended only when the budget is over.",
            fix=(f"watch it:\nkubectl -n {text(pod, 'metadata', 'namespace')} logs -f {name(pod)} -c {one.name}",),
        )
        return


_TROUBLE: Final = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/troubleshooting.html"
_VALIDATED: Final = re.compile(r"(?P<part>driver|toolkit)-validation|wait-for-(?P<other>driver|toolkit)")
_PARTS: Final = {"driver": re.compile(r"driver-daemonset|driver-"), "toolkit": re.compile(r"container-toolkit")}


@cluster_rule("KX517", title="an operator's pods wait for its driver or its toolkit",
              source=_TROUBLE)  # fmt: skip
def operator_waits(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in containers(pod):
        match = _VALIDATED.search(one.name)
        if match is None or not one.init or not (one.running or one.waiting == "CrashLoopBackOff") or healthy(pod):
            continue
        which = match["part"] or match["other"]
        here = text(pod, "spec", "nodeName")
        own = [each for each in cluster.of("Pod", namespace(pod)) if text(each, "spec", "nodeName") == here]
        blocked = [each for each in own if _PARTS[which].search(name(each)) and each is not pod and not healthy(each)]
        yield _operator(cluster, pod, one.name, which, blocked)
        return


def _operator(cluster: Cluster, pod: Object, init: str, which: str, blocked: list[Object]) -> Seen:
    here = text(pod, "spec", "nodeName")
    if blocked:
        state = f"{label(blocked[0])} is {text(blocked[0], 'status', 'phase')} and not ready"
        look = f"{cluster.in_(blocked[0])} logs {name(blocked[0])} --all-containers --tail 50"
    else:
        state = "none of its pods is here"
        look = f"{cluster.in_(pod)} get pods -o wide --field-selector spec.nodeName={here}"
    return Seen(
        title=f"{label(pod)} waits on {here} for the {which}: {state}",
        evidence=f"init container {init} has not ended",
        why="Layer: operator. Device plugin and validators start only when the node's driver and toolkit are set up; "
        "until then the node offers no card.",
        fix=(f"see what it does:\n{look}",),
        run_on=RunOn.CLUSTER_ADMIN,
    )
