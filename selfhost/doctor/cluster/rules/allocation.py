"""Placed on a node that should have the cards, and refused there: by the kubelet, the container engine, the hook."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.holders import holders
from selfhost.doctor.cluster.mend import delete, describe, patch
from selfhost.doctor.cluster.pod import asked_cards, containers, healthy, messages
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, counted, cut, label, name, namespace, text
from selfhost.shapes.finding import RunOn

TROUBLE: Final = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/troubleshooting.html"
_HANDLER: Final = re.compile(
    r'no runtime for "(?P<handler>[^"]+)" is configured|unknown runtime handler|'
    r'RuntimeHandler "(?P<other>[^"]+)" not supported'
)


_HOOK: Final = re.compile(
    r"nvidia-container-cli: (?P<what>[^\n\"]+)|nvidia-container-runtime-hook|"
    r"amd-container-runtime\S*: (?P<amd>[^\n\"]+)"
)
_REFUSED: Final = re.compile(
    r"requested number of devices unavailable for (?P<resource>[\w./-]+?)[.,]? "
    r"Requested: (?P<asked>\d+), Available: (?P<free>\d+)|"
    r"Node didn't have enough resource: (?P<other>[\w./-]+), requested: (?P<want>\d+), "
    r"used: (?P<used>\d+), capacity: (?P<has>\d+)"
)
_LOST: Final = re.compile(
    r"GPU is lost|no healthy devices present|cannot allocate unhealthy devices (?P<resource>[\w./-]+)|"
    r"fallen off the bus|\bXid\b",
    re.IGNORECASE,
)
_CONTAINERD: Final = re.compile(r"containerd://(?P<major>\d+)\.(?P<minor>\d+)")


def said(cluster: Cluster, pod: Object, pattern: re.Pattern[str]) -> tuple[re.Match[str], str] | None:
    if healthy(pod):
        return None
    for message in messages(cluster, pod):
        match = pattern.search(message)
        if match is not None:
            return match, message
    return None


def node_of(pod: Object) -> str:
    return text(pod, "spec", "nodeName") or "its node"


@cluster_rule("KX504", title="the node's container engine has no such runtime", source=TROUBLE)
def no_handler(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = said(cluster, pod, _HANDLER)
    if found is None:
        return
    match, message = found
    handler = match["handler"] or match["other"] or text(pod, "spec", "runtimeClassName") or "nvidia"
    toolkit = [
        one
        for one in cluster.of("Pod")
        if "container-toolkit" in name(one) and text(one, "spec", "nodeName") == text(pod, "spec", "nodeName")
    ]
    state = f"; {label(toolkit[0])} is {text(toolkit[0], 'status', 'phase')}" if toolkit else ""
    yield Seen(
        title=f'{label(pod)}: no runtime for "{handler}" is configured on {node_of(pod)}',
        evidence=f"{cut(message, 300)}{state}",
        why="Layer: container engine. The RuntimeClass exists, but it is only a name for what containerd must know "
        "on this very node: the toolkit has not been set up there, or is not done.",
        fix=(
            (
                f"with the GPU operator, see how far its toolkit is:\n{cluster.kubectl} get pods -A -o wide | grep -i "
                "toolkit"
            ),
            (
                "without it, on the node:\nsudo nvidia-ctk runtime configure --runtime=containerd\nsudo systemctl "
                "restart containerd"
            ),
        ),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@cluster_rule(
    "KX508",
    title="the node's container engine is too old for CDI",
    source="https://github.com/canonical/k8s-snap/issues/2388",
)
def too_old(cluster: Cluster, pod: Object) -> Iterator[Said]:
    node = cluster.node_of(pod)
    version = text(node, "status", "nodeInfo", "containerRuntimeVersion") if node is not None else ""
    match = _CONTAINERD.match(version)
    if match is None or (int(match["major"]), int(match["minor"])) >= (1, 7) or healthy(pod) or not asked_cards(pod):
        return
    failing = [
        one
        for one in containers(pod)
        if not one.ready
        and (one.waiting not in ("", "ContainerCreating", "PodInitializing") or one.restarts or one.ended)
    ]
    events = [
        one
        for one in cluster.events(pod)
        if one.reason in ("Failed", "FailedCreatePodSandBox", "BackOff", "FailedStart")
    ]
    if not failing and not events:
        return
    words = events[0].message if events else failing[0].waits_for or failing[0].last_words
    yield Seen(
        title=f"{label(pod)}: {node_of(pod)} runs {version.replace('://', ' ')}, which does not know CDI",
        evidence=f"containerRuntimeVersion {version}; {cut(words, 240) or failing[0].waiting}",
        why="Layer: container engine. The GPU operator lets cards in by CDI since 25.10, and containerd reads CDI "
        "from 1.7 on: with 1.6 the names go by unread, and the card or the driver's libraries are missing.",
        fix=(
            "bring containerd to 1.7 or newer on the node",
            (
                "or have the operator do without CDI:\n"
                f"{cluster.kubectl} patch clusterpolicies.nvidia.com cluster-policy --type merge "
                '-p \'{"spec":{"cdi":{"enabled":false}}}\''
            ),
        ),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@cluster_rule(
    "KX509", title="the vendor's hook cannot set the container up", source=TROUBLE, after=("KX511",), mute=True
)
def hook(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = said(cluster, pod, _HOOK)
    if found is not None:
        match, message = found
        what = (match["what"] or match["amd"] or "it failed").strip()
        yield Seen(
            title=f"{label(pod)}: the driver of {node_of(pod)} does not let the card in: {cut(what, 100)}",
            evidence=cut(message, 400),
            why="Layer: driver of the node. The hook asks the driver before the container starts, and the driver "
            "does not answer as it should: not loaded, another version than its library, or older than the image's "
            "CUDA.",
            fix=(
                "on the node, see what is wrong with it:\nnvidia-smi\nselfhost doctor",
                describe(cluster, pod, "all that was said"),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule(
    "KX510",
    title="the kubelet refuses devices that the scheduler counted as free",
    source="https://github.com/kubernetes/kubernetes/issues/130145",
    after=("KX511",),
)
def kubelet_refuses(cluster: Cluster, pod: Object) -> Iterator[Said]:
    reason = text(pod, "status", "reason")
    found = said(cluster, pod, _REFUSED)
    if found is None and not reason.startswith(("UnexpectedAdmissionError", "OutOf")):
        return
    match, message = found if found is not None else (None, text(pod, "status", "message"))
    groups = match.groupdict() if match else {}
    resource = groups.get("resource") or groups.get("other") or reason.removeprefix("OutOf") or "the device"
    if "/" not in resource:
        return  # memory and cpu at the kubelet are another matter
    count = groups.get("asked") or groups.get("want") or ""
    node = text(pod, "spec", "nodeName")
    by_scheduler = text(pod, "spec", "nodeName") and _bypassed(cluster, pod)
    own = [holder for holder in holders(cluster, node, resource) if holder.pod is not pod]
    counted_free = f"; pods that hold it by the API: {', '.join(map(str, own)) or 'none'}"
    failed = [
        one
        for one in cluster.of("Pod", namespace(pod))
        if cluster.root(one) is cluster.root(pod) and text(one, "status", "phase") == "Failed"
    ]
    piled = f"; {counted(len(failed), 'pod')} failed so" if len(failed) > 1 else ""
    yield Seen(
        title=f"{label(pod)}: the scheduler says {resource} is free on {node or 'the node'}, the kubelet says "
        + (f"{groups['free']} available" if groups.get("free") else "none")
        + (f" of {count} asked" if count else ""),
        evidence=f"{reason}: {cut(message, 240)}{counted_free}{piled}",
        why="Layer: kubelet. "
        + (
            "The pod names its node, so the scheduler never counted its cards."
            if by_scheduler
            else "Its own book-keeping of devices is stale: pods that were deleted by force still hold cards there; "
            "or the device is unhealthy."
        ),
        fix=(
            *((patch(cluster, pod, "let the scheduler choose", {"nodeName": None}),) if by_scheduler else ()),
            f"on {node or 'the node'}, let the kubelet count again:\nsudo systemctl restart kubelet",
            "do not delete pods by force: --force --grace-period=0 is what leaves cards behind",
            delete(cluster, pod, "the failed pod stays for reading only"),
        ),
        run_on=RunOn.CLUSTER_ADMIN if not by_scheduler else RunOn.HERE,
    )


def _bypassed(cluster: Cluster, pod: Object) -> bool:
    """A nodeName stood in what was applied, the pod or its template; or of all events none is of a scheduler."""
    applied = text(pod, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
    owner = next(cluster.owners(pod), None)
    if owner is not None:
        return bool(text(owner, "spec", "template", "spec", "nodeName"))
    reasons = {event.reason for event in cluster.events(pod)}
    return '"nodeName"' in applied or bool(reasons and not reasons & {"Scheduled", "FailedScheduling"})


@cluster_rule(
    "KX511",
    title="a card of the node is lost or unhealthy",
    source="https://docs.nvidia.com/deploy/xid-errors/index.html",
)
def lost(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = said(cluster, pod, _LOST)
    if found is not None:
        _, message = found
        failed = [
            one
            for one in cluster.of("Pod", namespace(pod))
            if cluster.root(one) is cluster.root(pod) and text(one, "status", "phase") == "Failed"
        ]
        piled = f"; {counted(len(failed), 'pod')} of {name(cluster.root(pod))} failed so far" if len(failed) > 1 else ""
        yield Seen(
            title=f"{label(pod)}: a card of {node_of(pod)} is lost or unhealthy",
            evidence=f"{cut(message, 300)}{piled}",
            why="Layer: hardware or driver. The card does not answer. New pods are sent there again and again, and "
            "fail.",
            fix=(
                f"take the node out of service:\n{cluster.kubectl} cordon {text(pod, 'spec', 'nodeName') or 'NODE'}",
                (
                    "on the node, look for the error, then reset the card or the machine:\nsudo dmesg | grep -i -E "
                    "'xid|fallen off|amdgpu'"
                ),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )
