"""Ready, and yet no traffic or no group: ports that do not match, workers in another network, no network at all."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.mend import describe
from selfhost.doctor.cluster.pod import containers, ended, healthy
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    at,
    counted,
    cut,
    label,
    labels,
    name,
    namespace,
    number,
    part,
    rows,
    text,
    texts,
    words,
)
from selfhost.shapes.finding import RunOn

_LOCAL_IP: Final = re.compile(r"Local node IP: (?P<ip>\d+\.\d+\.\d+\.\d+)")
_UNKNOWN_IP: Final = re.compile(r"No available node types can fulfill resource request \{'node:(?P<ip>[\d.]+)'")
_SANDBOX: Final = re.compile(
    r"failed to (?:setup|set up) network for sandbox|cni plugin not initialized|"
    r"NetworkPlugin cni failed|networkPlugin cni"
)
_GROUP: Final = "leaderworkerset.sigs.k8s.io/name"
_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"


@cluster_rule(
    "KX601",
    title="a pool's port is served by none of its pods",
    kinds=("InferencePool",),
    source="https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/2562",
)
def wrong_port(cluster: Cluster, pool: Object) -> Iterator[Said]:
    selector = texts(pool, "spec", "selector", "matchLabels") or {
        key: value for key, value in texts(pool, "spec", "selector").items() if not value.startswith("{")
    }
    ports = [number(one, "number") for one in rows(pool, "spec", "targetPorts")]
    ports = ports or [number(pool, "spec", "targetPortNumber")]
    pods = [pod for pod in cluster.selected(namespace(pool), selector) if not ended(pod)] if selector else []
    if not any(ports) or not pods:
        return
    for pod in pods:
        listed = [number(port, "containerPort") for one in containers(pod) for port in rows(one.spec, "ports")]
        host = [
            number(port, "hostPort")
            for one in containers(pod)
            for port in rows(one.spec, "ports")
            if port.get("hostPort")
        ]
        if listed and set(ports) & set(listed):
            continue
        wanted, shown = ", ".join(map(str, ports)), ", ".join(map(str, listed)) or "none"
        remapped = (
            f"; hostNetwork is on{f', hostPort {host[0]}' if host else ''}" if at(pod, "spec", "hostNetwork") else ""
        )
        yield Seen(
            title=f"{label(pod)} never gets traffic: pool port {wanted} is not among its containerPorts ({shown})",
            evidence=f"{label(pool)} targetPorts {wanted}; containerPorts {shown}{remapped}",
            why="Layer: endpoint picker. It drops endpoints on other ports than the pool's without a word: the pod "
            "is healthy and idle.",
            fix=(
                ("let the pool name the pod's port:\n"
                f"{cluster.in_(pool)} patch inferencepool {name(pool)} --type merge -p "
                f"'{{\"spec\":{{\"targetPorts\":[{{\"number\":{listed[0] if listed else 8000}}}]}}}}'"),
                "or let the engine listen there, and declare it under ports:",
            ),
            about=pod,
        )  # fmt: skip


@cluster_rule(
    "KX602",
    title="a worker is in another network than its leader",
    source="https://github.com/aws-samples/aws-do-eks/issues/49",
)
def other_network(cluster: Cluster, pod: Object) -> Iterator[Said]:
    """Of pods of one group that use the node's network."""
    yield from _no_such_node(pod)
    if not at(pod, "spec", "hostNetwork") or ended(pod):
        return
    leader = _leader(cluster, pod)
    address = text(leader, "status", "podIP") or text(leader, "status", "hostIP") if leader is not None else ""
    own = next((match["ip"] for one in containers(pod) if (match := _LOCAL_IP.search(one.last_words))), "")
    asks = any(
        "hostname -i" in " ".join((*words(one.spec, "command"), *words(one.spec, "args")))
        or any("hostname -i" in text(variable, "value") for variable in rows(one.spec, "env"))
        for one in containers(pod)
    )
    mine = own or text(pod, "status", "podIP")
    if (
        leader is None
        or leader is pod
        or not address
        or not mine
        or _network(mine) == _network(address)
        or not (own or asks)
    ):
        return
    yield Seen(
        title=f"{label(pod)}: worker IP {mine} is not in the leader's network ({address})",
        evidence=f"hostNetwork: true; leader {name(leader)} has "
        f"{address}{'; the command asks `hostname -i`' if asks else ''}",
        why="Layer: node's network. With hostNetwork `hostname -i` gives nothing, or the address of another card "
        "than the one that leads to the leader: the leader waits for nodes that register elsewhere.",
        fix=(
            (
                "take the address from the API, in the container's env:\n"
                "- {name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"
            ),
            "or take the source address of the way to the leader:\nip -o route get LEADER_IP | grep -oP 'src \\K\\S+'",
            "or do without hostNetwork",
        ),
    )


def _no_such_node(pod: Object) -> Iterator[Seen]:
    """Ray was asked for a node by an address that none registered with."""
    match = next((found for one in containers(pod) if (found := _UNKNOWN_IP.search(one.last_words))), None)
    if match is not None:
        yield Seen(
            title=f"{label(pod)}: the engine asks for the node {match['ip']}, and none registered under that address",
            evidence=f"{cut(match[0])}'; podIP {text(pod, 'status', 'podIP') or 'unknown'}",
            why="Layer: node's network. The machine has several addresses: Ray registered one of them, and the "
            "engine found another.",
            fix=(
                (
                    "name the address that Ray registered with, in the container's env:\n"
                    "- {name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"
                ),
            ),
        )


def _leader(cluster: Cluster, pod: Object) -> Object | None:
    own = labels(pod)
    if _GROUP in own:
        group = [
            one
            for one in cluster.of("Pod", namespace(pod))
            if labels(one).get(_GROUP) == own[_GROUP] and labels(one).get(_GROUP_INDEX) == own.get(_GROUP_INDEX)
        ]
        return next((one for one in group if labels(one).get(_INDEX) == "0"), None)
    root = cluster.root(pod)
    group = [one for one in cluster.of("Pod", namespace(pod)) if cluster.root(one) is root]
    roles = [
        one
        for one in cluster.of("Pod", namespace(pod))
        if re.search(r"leader|head|master", name(one)) and not ended(one)
    ]
    return next(
        (one for one in sorted(group, key=name) if re.search(r"leader|head|master|-0\Z", name(one))),
        roles[0] if roles else None,
    )


def _network(address: str) -> tuple[str, ...]:
    """A clouds' subnet has at most 16 bits of hosts."""
    return tuple(address.split(".")[:2])


@cluster_rule(
    "KX604",
    title="the pod's network cannot be set up on the node",
    source="https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/network-plugins/",
)
def no_network(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if healthy(pod):
        return
    event = next((one for one in cluster.events(pod) if _SANDBOX.search(one.message)), None)
    if event is not None and not any(one.running for one in containers(pod)):
        yield Seen(
            title=f"{label(pod)}: node {text(pod, 'spec', 'nodeName')} cannot give it a network",
            evidence=f"{event.reason}: {cut(event.message, 300)}",
            why="Layer: CNI. The network plugin of that node does not run, or has no addresses left.",
            fix=(
                (
                    f"see its pods on that node:\n{cluster.kubectl} -n kube-system get pods -o wide --field-selector "
                    f"spec.nodeName={text(pod, 'spec', 'nodeName')}"
                ),
                describe(cluster, pod, "all that was said"),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule(
    "KX318",
    title="a group is made anew again and again while one of its pods still pulls",
    kinds=("LeaderWorkerSet",),
    source="https://github.com/kubernetes-sigs/lws/issues/725",
)
def group_restarts(cluster: Cluster, one: Object) -> Iterator[Said]:
    policy = text(one, "spec", "leaderWorkerTemplate", "restartPolicy") or "RecreateGroupOnPodRestart"
    pods = [pod for pod in cluster.of("Pod", namespace(one)) if labels(pod).get(_GROUP) == name(one)]
    slow = [pod for pod in pods if text(pod, "status", "phase") == "Pending"]
    recreated = [event for event in cluster.events(one) if re.search(r"[Rr]ecreat", f"{event.reason} {event.message}")]
    ends = [
        pod
        for pod in pods
        if any(
            each.restarts or part(each.status, "lastState", "terminated") or part(each.status, "state", "terminated")
            for each in containers(pod)
        )
    ]
    if policy != "RecreateGroupOnPodRestart" or not slow or not (recreated or ends):
        return
    pulls = [pod for pod in slow if any(event.reason == "Pulling" for event in cluster.events(pod))]
    who = (pulls or slow)[0]
    yield Seen(
        title=f"{label(one)} makes its group anew while a pod of the group is still "
        f"Pending{'/pulling' if pulls else ''}: {name(who)}",
        evidence=f"restartPolicy {policy}; {counted(len(slow), 'pod')} Pending; "
        + (
            f"{recreated[0].reason}: {cut(recreated[0].message, 160)} (seen {recreated[0].count} times)"
            if recreated
            else f"{name(ends[0])} ended before"
        ),
        why="Layer: LeaderWorkerSet. The others wait for the slow one, give up after the engine's own time, and "
        "their restart makes the whole group anew, the pull included.",
        fix=(
            (
                "make a group anew only once all of it has started (LWS 0.9 or newer):\n"
                f"{cluster.in_(one)} patch leaderworkerset {name(one)} --type merge -p "
                '\'{"spec":{"leaderWorkerTemplate":{"restartPolicy":"RecreateGroupAfterStart"}}}\''
            ),
            "or bring the image to every node before",
        ),
    )
