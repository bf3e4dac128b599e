"""Room on the node that would do: cpu, memory, disk, pods; and cards that are there and not healthy."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from selfhost.doctor.cluster.fit import cards_wanted, readable
from selfhost.doctor.cluster.holders import capacity
from selfhost.doctor.cluster.mend import patch_container
from selfhost.doctor.cluster.pod import asked_by, containers
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.resources import misses, other_names, words
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, label
from selfhost.shapes.finding import RunOn

_SHOWN: Final = 4


@cluster_rule(
    "KX008",
    title="cpu, memory, disk or pod slots of the node do not suffice",
    source="https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/",
)
def no_room(cluster: Cluster, pod: Object) -> Iterator[Said]:
    carded = bool(cards_wanted(pod))
    for resource, found in misses(cluster, pod, "room").items():
        largest, miss = max(found, key=lambda pair: pair[1].free)
        whole = capacity(largest.node).get(resource)
        never = miss.asked > miss.has
        shown = readable(resource, miss.asked), readable(resource, miss.has)
        of = f" (capacity {readable(resource, whole)})" if whole is not None and whole != miss.has else ""
        free_cards = " although its cards are free" if carded and not largest.has("held", "many", "absent") else ""
        yield Seen(
            title=f"{label(pod)} asks for {shown[0]} {resource}; {largest.name} has "
            + (f"{shown[1]} allocatable{of}" if never else f"{readable(resource, max(miss.free, Decimal(0)))} free")
            + free_cards,
            evidence="\n".join(str(one) for one, _ in found[:_SHOWN]) + words(cluster, pod),
            why="Layer: scheduler. "
            + (
                "What a node has less what the system keeps is allocatable, and no request may be larger."
                if never
                else "Requests of the pods that run there are counted, not what they use."
            ),
            fix=(
                _lower(cluster, pod, resource, miss.has if never else max(miss.free, Decimal(0)))
                if resource != "pods"
                else f"the node takes {miss.has} pods and has them; move some away",
                *(() if never else (_pods_on(cluster, largest.name),)),
            ),
        )


def _pods_on(cluster: Cluster, node: str) -> str:
    return f"see what runs there:\n{cluster.kubectl} get pods -A -o wide --field-selector spec.nodeName={node}"


def _lower(cluster: Cluster, pod: Object, resource: str, to: Decimal) -> str:
    own = [one for one in containers(pod) if not one.init]
    largest = max(own, key=lambda one: asked_by(one.spec).get(resource, Decimal(0)), default=None)
    room = readable(resource, to)
    if largest is None or not to:
        return f"ask for less {resource}: {room} can be had"
    whole = f"{int(to / (1024**2))}Mi" if resource in ("memory", "ephemeral-storage") else f"{int(to * 1000)}m"
    return patch_container(
        cluster, pod, largest.name, f"ask for no more than {room} {resource}, with all containers of the pod",
        {"resources": {"requests": {resource: whole}, "limits": {resource: whole}}},
    )  # fmt: skip


@cluster_rule(
    "KX512",
    title="every card of the node is reported unhealthy",
    source="https://docs.nvidia.com/deploy/xid-errors/index.html",
)
def all_unhealthy(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for resource, found in misses(cluster, pod, "unhealthy").items():
        if other_names(cluster, resource):
            continue
        one = found[0][0]
        has = capacity(one.node).get(resource, Decimal(0))
        yield Seen(
            title=f"{one.name} has {has} {resource}, and offers none of them",
            evidence=f"capacity {has}, allocatable 0{words(cluster, pod)}",
            why="Layer: device plugin. It reports cards as unhealthy after an Xid or an ECC error, or it has lost "
            "them.",
            fix=(
                "on the node, look for the error:\nsudo dmesg | grep -i -E 'xid|amdgpu.*error|xe .*reset'",
                f"see what the plugin says of them:\n{cluster.kubectl} describe node {one.name}",
            ),
            run_on=RunOn.CLUSTER_ADMIN,
            about=one.node,
        )
