"""Clusters that grow by themselves: nodes that do not come, operators that see no card, replicas that never move."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.pod import asked_cards, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.resources import misses
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, condition, cut, label, labels, name, namespace, rows, text, texts
from selfhost.shapes.finding import RunOn, Severity

_NO_SCALE_UP: Final = re.compile(r"NotTriggerScaleUp|NoNodeGroup|FailedScaleUp|NotTriggered", re.IGNORECASE)
_KARPENTER: Final = re.compile(
    r"incompatible with nodepool|no instance type satisfied|did not tolerate taint", re.IGNORECASE
)
_VENDORS: Final = {
    "nvidia.com/": ("10de", "nvidia.com/gpu.deploy."),
    "amd.com/": ("1002", "feature.node.kubernetes.io/amd-gpu"),
    "gpu.intel.com/": ("8086", "intel.feature.node.kubernetes.io/gpu"),
}
"""PCI vendor of the label, and the label by which the operator's daemon sets choose their nodes."""
_CARDED: Final = re.compile(r"\b(?:p[2-6][a-z]*|g[3-6][a-z]*)\.|^(?:a2|a3|a4|g2)-|_N[CDGV]", re.IGNORECASE)
"""Instance types of clouds that have cards."""
_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


@cluster_rule(
    "KX011",
    title="the autoscaler brings no node for the pod",
    source="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md",
    after=("KX00", "KX012"),
)
def not_grown(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if not unscheduled(pod):
        return
    for event in cluster.events(pod):
        if (
            _NO_SCALE_UP.search(event.reason)
            or "didn't trigger scale-up" in event.message
            or _KARPENTER.search(event.message)
        ):
            yield Seen(
                title=f"the autoscaler brings no node for {label(pod)}",
                evidence=f"{event.reason}: {cut(event.message, 300)}",
                why="Layer: autoscaler. It tries the pod on a model of each pool's next node. What labels a node "
                "only after it has joined (GPU or node feature discovery) is not in that model, nor is a resource "
                "that no plugin has registered yet.",
                fix=(
                    (
                        "select the pool by a label that the cloud sets itself, such as "
                        f"cloud.google.com/gke-accelerator or node.kubernetes.io/instance-type:\n{cluster.kubectl} "
                        "get nodes -L node.kubernetes.io/instance-type"
                    ),
                    "or tell the autoscaler the pool's labels, taints and cards (node-template tags of its cloud)",
                ),
                run_on=RunOn.CLUSTER_ADMIN,
            )
            return


@cluster_rule(
    "KX012",
    title="the label by which the vendor's operator finds its nodes is absent",
    source="https://github.com/NVIDIA/gpu-operator/issues/423",
)
def not_discovered(cluster: Cluster, pod: Object) -> Iterator[Said]:
    """Only where an operator is there that waits for the label."""
    for resource in misses(cluster, pod, "absent") if asked_cards(pod) else ():
        vendor, deploy = next((row for prefix, row in _VENDORS.items() if resource.startswith(prefix)), ("", ""))
        waiting = _operator(cluster, vendor, deploy)
        if not vendor or not waiting:
            continue
        wanted = re.compile(rf"feature\.node\.kubernetes\.io/pci-(?:\w+_)?{vendor}(?:_\w+)?\.present\Z")
        without = [node for node in cluster.of("Node") if not any(wanted.match(key) for key in labels(node))]
        if len(without) < len(cluster.of("Node")):
            continue  # one was discovered: what is wrong there is another thing
        known = f"feature.node.kubernetes.io/pci-{vendor}.present"
        likely = [node for node in without if _CARDED.search(_type(node))] or without
        first = likely[0]
        shown = f"{name(first)} ({_type(first)})" if _type(first) else name(first)
        yield Seen(
            title=f"{known} is absent from every node, so {waiting} runs nothing on {shown}",
            evidence=f"{label(pod)} asks for {resource}; labels of {name(first)} that name a PCI device: "
            f"{', '.join(key for key in labels(first) if '/pci-' in key) or 'none'}",
            why="Layer: operator. Node feature discovery labels nodes by the PCI vendor, and the operator's driver, "
            "toolkit and device plugin go only where that label is. Without it no card is ever advertised.",
            fix=(
                (
                    f"see whether node feature discovery runs there:\n{cluster.kubectl} get pods -A -o wide | grep -i "
                    "-E 'nfd|node-feature'"
                ),
                (
                    f"or label the node by hand, if it has the card:\n{cluster.kubectl} label node {name(first)} "
                    f"{known}=true"
                ),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
            about=first,
        )


def _type(node: Object) -> str:
    return next((labels(node)[key] for key in _TYPES if key in labels(node)), "")


def _operator(cluster: Cluster, vendor: str, deploy: str) -> str:
    """What waits for the label: a policy of the operator, or a daemon set that wants it."""
    if vendor == "10de" and cluster.of("ClusterPolicy"):
        return "the GPU operator"
    if vendor == "1002" and cluster.of("DeviceConfig"):
        return "AMD's GPU operator"
    for one in cluster.of("DaemonSet"):
        wanted = texts(one, "spec", "template", "spec", "nodeSelector")
        if deploy and any(key.startswith(deploy) or f"pci-{vendor}" in key for key in wanted):
            return f"daemon set {namespace(one)}/{name(one)}"
    return ""


@cluster_rule(
    "KX023",
    title="an autoscaler gets no metric, so it never moves",
    kinds=("HorizontalPodAutoscaler", "ScaledObject"),
    severity=Severity.WARNING,
    source="https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/",
)
def blind(cluster: Cluster, one: Object) -> Iterator[Said]:
    if text(one, "kind") == "HorizontalPodAutoscaler":
        active = condition(one, "ScalingActive")
        if active.get("status") != "False" or text(active, "reason") == "ScalingDisabled":
            return
        yield Seen(
            title=f"{label(one)} gets no metric and never moves",
            evidence=f"ScalingActive False, {text(active, 'reason')}: {cut(text(active, 'message'), 240)}",
            why="Layer: autoscaler. The metric's query finds nothing: its name, a label or the adapter is wrong. "
            "vLLM's series are called vllm:num_requests_waiting, with a colon, and labelled model_name.",
            fix=(f"see what it asks for:\n{cluster.in_(one)} describe hpa {name(one)}",),
        )
        return
    for trigger in rows(one, "spec", "triggers"):
        query = text(trigger, "metadata", "query")
        wrong = re.search(r"vllm:\w+\{[^}]*\bmodel\s*=", query)
        underscored = re.search(r"\bvllm_(?:num_requests|gpu_cache|kv_cache)\w*|vllm:gpu_cache_usage_perc", query)
        if not wrong and not underscored:
            continue
        what = "the label 'model' does not exist on the series" if wrong else f"no series is called {underscored[0]}"  # type: ignore[index]
        yield Seen(
            title=f"{label(one)} never scales: {what}",
            evidence=f"query: {cut(query, 240)}",
            why="Layer: autoscaler. vLLM labels its series model_name and writes their names with a colon. A query "
            "that finds nothing counts as 0 by default (ignoreNullValues), so the object looks Ready and never acts.",
            fix=(
                f"ask for what is there:\n{cluster.in_(one)} edit scaledobject {name(one)}  # query: {_mended(query)}",
            ),
        )


def _mended(query: str) -> str:
    query = query.replace("gpu_cache_usage_perc", "kv_cache_usage_perc")  # its name since the V1 engine
    return re.sub(r"\bvllm_(?=\w)", "vllm:", re.sub(r"(?<=[{,])\s*model\s*=", "model_name=", query))
