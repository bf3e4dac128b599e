"""What keeps a pod off the node that has its cards: taints, labels, gates, nodes that take nobody."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.fit import Fit, Miss
from selfhost.doctor.cluster.mend import patch, tolerations
from selfhost.doctor.cluster.pod import scheduler_says
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.resources import misses, words
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    label,
    labels,
    part,
    rows,
    text,
)
from selfhost.shapes.finding import RunOn

AFFINITY: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/"
_SHOWN: Final = 4
_LABELLERS: Final = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "feature.node.kubernetes.io/")
_VALUE: Final = re.compile(r"(?P<number>\d+)\s*(?P<unit>[KMGT]i?B?)\Z")


@cluster_rule(
    "KX005",
    title="a taint keeps the pod off the node that would fit",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
)
def tainted(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = scheduler_says(cluster, pod)
    for key, found in misses(cluster, pod, "taint").items():
        fit, miss = found[0]
        _, value, effect = miss.taint
        wrong = [one for one in rows(pod, "spec", "tolerations") if text(one, "key") == key]
        has = f"; it tolerates {key}={text(wrong[0], 'value')} only" if wrong and text(wrong[0], "value") else ""
        trap = (
            " `Insufficient` in the scheduler's message counts the nodes without cards."
            if "Insufficient" in said
            else ""
        )
        yield Seen(
            title=f"{label(pod)} does not tolerate the taint {key}{f'={value}' if value else ''}:{effect} of "
            f"{_names([one for one, _ in found])}",
            evidence="\n".join(str(one) for one, _ in found[:_SHOWN]) + has + words(cluster, pod),
            why="Layer: scheduler. The taint keeps the node for pods that say they want it; "
            f"{_else(fit, 'taint')}.{trap}",
            fix=(patch(cluster, pod, "tolerate it", tolerations(pod, key, effect)),),
        )


def _names(found: list[Fit]) -> str:
    rest = f" and {len(found) - 2} more" if len(found) > 2 else ""
    return f"node {', '.join(one.name for one in found[:2])}{rest}"


def _else(fit: Fit, kind: str) -> str:
    others = [miss.text for miss in fit.misses if miss.kind != kind]
    return f"besides, it {others[0]}" if others else "nothing else keeps the pod from it"


@cluster_rule("KX006", title="no node has the labels that a pod wants", source=AFFINITY)
def unlabelled(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for key, found in misses(cluster, pod, "label").items():
        mismatch = found[0][1].mismatch
        if mismatch is None or any(one.number for _, miss in found if (one := miss.mismatch)):
            continue
        lines = [
            f"{one.name}: {key}={miss.mismatch.actual}" if miss.mismatch.actual is not None else f"{one.name}: no {key}"
            for one, miss in found[:_SHOWN]
            if miss.mismatch is not None
        ]
        yield Seen(
            title=f"{label(pod)} wants {mismatch.wanted}, and {_names([one for one, _ in found])} has "
            + (mismatch.actual if mismatch.actual is not None else "no such label"),
            evidence="\n".join(lines) + words(cluster, pod),
            why=f"Layer: scheduler. {_hint(cluster, key, found)}",
            fix=(
                f"see which values there are:\n{cluster.kubectl} get nodes -L {key}",
                *_relabel(cluster, pod, key, found),
            ),
        )


def _hint(cluster: Cluster, key: str, found: list[tuple[Fit, Miss]]) -> str:
    actual = [miss.mismatch.actual for _, miss in found if miss.mismatch is not None]
    nowhere = not any(key in labels(node) for node in cluster.of("Node"))
    if nowhere and key.startswith(_LABELLERS):
        return (
            f"No node carries {key} at all: its labeller (GPU feature discovery, node feature discovery, the vendor's "
            "node labeller) does not run, or the pool has no node yet."
        )
    if nowhere:
        return f"No node carries {key} at all."
    if any(one and re.search(r"-SHARED|-MIG-", one) for one in actual):
        return "Sharing and MIG change the product's name: `-SHARED` or `-MIG-…` is part of the value."
    return (
        f"A required term is met by the exact value only. Of the nodes with the cards, {_else(found[0][0], 'label')}."
    )


def _relabel(cluster: Cluster, pod: Object, key: str, found: list[tuple[Fit, Miss]]) -> Iterator[str]:
    actual = next((miss.mismatch.actual for _, miss in found if miss.mismatch and miss.mismatch.actual), None)
    if key in part(pod, "spec", "nodeSelector"):
        value = actual if actual is not None else None
        yield patch(
            cluster, pod, "want what is there" if value else "leave the selector out", {"nodeSelector": {key: value}}
        )
    else:
        yield f'set values: ["{actual}"] in the affinity term' if actual else "take the term out of the pod's affinity"


@cluster_rule(
    "KX007", title="a comparison in a node affinity has a value that is no integer",
    source="https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#nodeselectorrequirement-v1-core",
)  # fmt: skip
def no_number(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for key, found in misses(cluster, pod, "number").items():
        mismatch = found[0][1].mismatch
        if mismatch is None:
            continue
        wanted = mismatch.wanted.rpartition(" ")[2]
        match = _VALUE.fullmatch(wanted)
        yield Seen(
            title=f"{label(pod)} wants {mismatch.wanted}, which no node can ever meet",
            evidence="\n".join(
                f"{one.name}: {key}={miss.mismatch.actual}" for one, miss in found[:_SHOWN] if miss.mismatch
            )
            + words(cluster, pod),
            why=f"Layer: scheduler. Gt and Lt compare whole numbers; `{wanted}` is none. The API server takes it all "
            f"the same.{' nvidia.com/gpu.memory is in MiB.' if key.endswith('.memory') else ''}",
            fix=(
                f'write the plain number: values: ["{_mib(match)}"]'
                if match
                else "write a plain number, or use In with the label's own values",
                f"see which values there are:\n{cluster.kubectl} get nodes -L {key}",
            ),
        )


def _mib(match: re.Match[str]) -> int:
    power = {"K": -1, "M": 0, "G": 1, "T": 2}[match["unit"][0]]
    return int(int(match["number"]) * 1024**power)


@cluster_rule(
    "KX010",
    title="the node that would fit takes no pods now",
    source="https://kubernetes.io/docs/concepts/architecture/nodes/#manual-node-administration",
)
def closed(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for fit, miss in misses(cluster, pod, "cordoned").get("unschedulable", ()):
        yield Seen(
            title=f"node {fit.name}, where {label(pod)} would fit, is cordoned",
            evidence=f"{fit}{words(cluster, pod)}",
            why=f"Layer: scheduler. Somebody took it out of service, or an update does; {_else(fit, miss.kind)}.",
            fix=(f"when the work on it is done:\n{cluster.kubectl} uncordon {fit.name}",),
            run_on=RunOn.CLUSTER_ADMIN,
            about=fit.node,
        )
    for fit, miss in misses(cluster, pod, "unready").get("Ready", ()):
        yield Seen(
            title=f"node {fit.name}, where {label(pod)} would fit, is not ready",
            evidence=f"{fit}{words(cluster, pod)}",
            why=f"Layer: kubelet. It reports nothing or a fault; {_else(fit, miss.kind)}.",
            fix=(f"see what it said last:\n{cluster.kubectl} describe node {fit.name}",),
            run_on=RunOn.CLUSTER_ADMIN,
            about=fit.node,
        )
