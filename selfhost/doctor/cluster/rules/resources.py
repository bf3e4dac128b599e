"""Cards and room: what a pod that no node takes asks for, and what the nodes offer and who holds it."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from selfhost.doctor.cluster.fit import Fit, Miss, closest, fits
from selfhost.doctor.cluster.holders import allocatable, holders
from selfhost.doctor.cluster.mend import describe, patch_container
from selfhost.doctor.cluster.pod import asked_by, asked_cards, containers, going, scheduler_says, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, counted, cut, label, name, text
from selfhost.shapes.finding import RunOn, Severity

PLUGINS: Final = "https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/"
_SHOWN: Final = 4
_FAMILY: Final = re.compile(r"(?P<vendor>[\w.-]+)/")
_NOT_CARDS: Final = re.compile(
    r"_monitoring|/monitoring|millicores|memory\.max|/tiles|gpumem|gpucores|gpu-memory|/roce|/rdma"
)


def waits(cluster: Cluster, pod: Object) -> tuple[Fit, ...]:
    """Nodes closest to fitting, for a pod that none takes; empty for every other pod, or where no node is known."""
    return cluster.once(("waits", label(pod)), lambda: closest(fits(cluster, pod)) if unscheduled(pod) else ())


def misses(cluster: Cluster, pod: Object, kind: str) -> dict[str, list[tuple[Fit, Miss]]]:
    """Of the closest nodes, by resource or label."""
    found: dict[str, list[tuple[Fit, Miss]]] = {}
    for one in waits(cluster, pod):
        for miss in one.of(kind):
            found.setdefault(miss.key, []).append((one, miss))
    return found


def words(cluster: Cluster, pod: Object) -> str:
    """The scheduler's own, to stand below what was computed."""
    said = scheduler_says(cluster, pod).partition("preemption:")[0]
    return f"\nscheduler: {cut(said.rstrip(' ,.'), 240)}" if said else ""


@cluster_rule("KX001", title="no node advertises the resource that a pod asks for", source=PLUGINS, after=("KX012",))
def nowhere(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for resource, found in misses(cluster, pod, "absent").items():
        if other_names(cluster, resource):
            continue
        nodes = cluster.of("Node")
        count = int(found[0][1].asked)
        yield Seen(
            title=f"{label(pod)} asks for {count} {resource}, and no node advertises it",
            evidence=f"{counted(len(nodes), 'node')}, none with {resource} in "
            f"status.allocatable{_most(cluster)}{words(cluster, pod)}",
            why="Layer: scheduler. `Insufficient` here means none at all: the cluster has no such card, or the "
            "driver and the device plugin that would count it do not run on the node that has it.",
            fix=(
                (
                    "see whether a device plugin runs, and where:\n"
                    f"{cluster.kubectl} get daemonsets -A | grep -i -E 'device-plugin|gpu|accelerator'"
                ),
                f"if the cluster has no such card, take the key {resource} out of the pod; 0 is not the same as absent",
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


def _most(cluster: Cluster) -> str:
    """What the cluster offers instead, where that is anything."""
    found = {key for node in cluster.of("Node") for key, count in allocatable(node).items() if "/" in key and count}
    cards = sorted(
        key for key in found if not _NOT_CARDS.search(key) and not key.startswith(("hugepages", "attachable"))
    )
    return f"; offered instead: {', '.join(cards[:_SHOWN])}" if cards else ""


def other_names(cluster: Cluster, resource: str) -> dict[str, tuple[Decimal, str]]:
    """Resources of the same vendor that nodes do offer, with how many and where."""
    match = _FAMILY.match(resource)
    found: dict[str, tuple[Decimal, str]] = {}
    for node in cluster.of("Node"):
        for key, count in allocatable(node).items():
            own = match is not None and key.startswith(f"{match['vendor']}/") and not _NOT_CARDS.search(key)
            if own and key != resource and count:
                found[key] = (found.get(key, (Decimal(0), ""))[0] + count, name(node))
    return found


@cluster_rule(
    "KX004",
    title="nodes offer the cards under another resource name",
    source="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html",
)
def named_otherwise(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for resource, found in {**misses(cluster, pod, "absent"), **misses(cluster, pod, "unhealthy")}.items():
        others = other_names(cluster, resource)
        if not others:
            continue
        first = next(iter(others))
        wanted = int(found[0][1].asked)
        yield Seen(
            title=f"{label(pod)} asks for {resource}; the cluster's cards are called {', '.join(others)}",
            evidence="; ".join(f"{key}: {count} on {node}" for key, (count, node) in others.items())
            + words(cluster, pod),
            why=f"Layer: device plugin. {_naming(first)} {resource} itself is offered by no node.",
            fix=(
                _swap(cluster, pod, resource, first, wanted),
                *(
                    (f"one slice or share is one pod's: an engine that spreads over {wanted} needs whole cards",)
                    if wanted > 1
                    else ()
                ),
            ),
        )


def _naming(resource: str) -> str:
    if "/mig-" in resource:
        return "MIG with the strategy `mixed` cuts the cards and names each slice by its profile."
    if resource.endswith(".shared"):
        return "Time slicing or MPS with `renameByDefault` offers shares of the cards under a name of their own."
    if re.search(r"/[sdtqc]px", resource):
        return "The naming strategy `mixed` calls partitions by their compute and memory mode."
    if resource.startswith("gpu.intel.com/"):
        return "The plugin names cards by the kernel driver that runs them, i915 or xe."
    return "The plugin names them so."


def _swap(cluster: Cluster, pod: Object, resource: str, to: str, count: int) -> str:
    container = next((one for one in containers(pod) if resource in asked_by(one.spec)), None)
    amount = 1 if "/mig-" in to or to.endswith(".shared") else count
    limits = {resource: None, to: amount}
    what = f"ask for {to}"
    if container is None:
        return what
    return patch_container(
        cluster, pod, container.name, what, {"resources": {"limits": limits, "requests": {resource: None}}}
    )


@cluster_rule("KX003", title="a pod asks for more of a resource than any one node has", source=PLUGINS)
def too_many(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for resource, found in misses(cluster, pod, "many").items():
        most = max(allocatable(node).get(resource, Decimal(0)) for node in cluster.of("Node"))
        wanted = found[0][1].asked
        yield Seen(
            title=f"{label(pod)} asks for {wanted} {resource}; the most that one node has is {most}",
            evidence="; ".join(str(one) for one, _ in found[:_SHOWN]) + words(cluster, pod),
            why="Layer: scheduler. A pod runs on one node: cards of several nodes do not add up.",
            fix=(
                f"ask for {most} or fewer, and let the engine spread over as many (--tensor-parallel-size {most})",
                "or spread one engine over several nodes, one pod each (LeaderWorkerSet)",
            ),
        )


@cluster_rule(
    "KX002",
    title="every unit of the resource is held by other pods",
    source="https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources",
    after=("KX016", "KX020"),
)
def all_held(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for resource, found in misses(cluster, pod, "held").items():
        lines = []
        for one, miss in found[:_SHOWN]:
            who = ", ".join(str(holder) for holder in holders(cluster, one.name, resource)[:_SHOWN])
            lines.append(f"{one.name}: {miss.free} of {miss.has} free; {who}")
        largest = max(found, key=lambda pair: pair[1].free)
        nearest = f"{largest[0].name} comes closest, with {largest[1].free} of {largest[1].has} free"
        first = next(iter(holders(cluster, largest[0].name, resource)), None)
        yield Seen(
            title=f"{label(pod)} waits for {largest[1].asked} {resource}: {_who(cluster, resource, found)}",
            evidence="\n".join(lines) + words(cluster, pod),
            why=f"Layer: scheduler. A card is given to one pod at a time, whether it is busy or not; {nearest}.",
            fix=(
                *((f"free cards, if that one may go:\n{_scale_down(cluster, first.pod)}",) if first else ()),
                f"or add a node with {resource}",
            ),
        )


def _who(cluster: Cluster, resource: str, found: list[tuple[Fit, Miss]]) -> str:
    pods = [holder.called for one, _ in found for holder in holders(cluster, one.name, resource)]
    rest = f" and {len(pods) - 2} more" if len(pods) > 2 else ""
    return f"held by {', '.join(pods[:2])}{rest}" if pods else "they are held"


def _scale_down(cluster: Cluster, pod: Object) -> str:
    for owner in cluster.owners(pod):
        if text(owner, "kind") in ("Deployment", "StatefulSet"):
            return f"{cluster.in_(owner)} scale {text(owner, 'kind').lower()} {name(owner)} --replicas 0"
    return f"{cluster.in_(pod)} delete pod {name(pod)}"


@cluster_rule(
    "KX020",
    title="a pod that is being deleted still holds cards",
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination",
    severity=Severity.WARNING,
)
def going_and_holding(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if going(pod):
        for resource, count in asked_cards(pod).items() if text(pod, "spec", "nodeName") else ():
            yield _still_held(cluster, pod, resource, count, ())
        return
    for resource, found in misses(cluster, pod, "held").items():
        for one, miss in found:
            held = holders(cluster, one.name, resource)
            leaving = [holder for holder in held if going(holder.pod)]
            if leaving and miss.free + sum(holder.count for holder in leaving) >= miss.asked:
                yield _still_held(cluster, leaving[0].pod, resource, leaving[0].count, (pod,))


def _still_held(cluster: Cluster, pod: Object, resource: str, count: int, waiting: tuple[Object, ...]) -> Seen:
    since = text(pod, "metadata", "deletionTimestamp")
    grace = text(pod, "metadata", "deletionGracePeriodSeconds") or text(pod, "spec", "terminationGracePeriodSeconds")
    blocked = f", and {label(waiting[0])} waits for them" if waiting else ""
    fixed = text(pod, "metadata", "finalizers")
    return Seen(
        title=f"{label(pod)} is being deleted and still holds {count} {resource}{blocked}",
        evidence=f"deletionTimestamp {since}; grace period {grace or '30'} s; node {text(pod, 'spec', 'nodeName')}"
        + (f"; finalizers {fixed}" if fixed else ""),
        why="Layer: kubelet. Its cards are free when its last process has ended. A shell as first process passes "
        "SIGTERM to nobody, so the whole grace period goes by; a process stuck in the driver outlives even SIGKILL.",
        fix=(
            describe(cluster, pod, "it ends by itself after the grace period; if it doesn't, see what holds it"),
            'start the engine without a shell around it, or with `exec`: command: ["vllm", "serve"]',
            "on the node, see what still has the card open:\nnvidia-smi --query-compute-apps=pid,name --format=csv",
        ),
        severity=Severity.ERROR if waiting else None,
        about=pod,
    )
