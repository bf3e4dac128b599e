"""Images that are not for this node: another processor, a name that is none, one that may not be pulled."""

from collections.abc import Iterator

from selfhost.doctor.cluster.mend import patch, patch_container
from selfhost.doctor.cluster.pod import containers
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.image import IMAGES, pulls_of
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, text


@cluster_rule("KX106", title="the image is for another processor or system", source=IMAGES)
def wrong_platform(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = list(pulls_of(cluster, pod, "KX106"))
    found += [(one, cut(one.last_words)) for one in containers(pod) if "exec format error" in one.last_words]
    for one, said in found[:1]:
        node = cluster.node_of(pod)
        has = text(node, "status", "nodeInfo", "architecture") if node is not None else ""
        yield Seen(
            title=f"{label(pod)}: {one.image} is not for the processor of node {text(pod, 'spec', 'nodeName')}"
            + (f" ({has})" if has else ""),
            evidence=said,
            why="Layer: image. It holds programs for another architecture.",
            fix=(
                f"see for which it is:\ndocker manifest inspect {one.image}",
                patch(cluster, pod, "or go where it runs", {"nodeSelector": {"kubernetes.io/arch": "amd64"}}),
            ),
        )


@cluster_rule("KX108", title="the image's name is no name", source=IMAGES)
def no_name(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX108"):
        yield Seen(
            title=f"{label(pod)}: `{one.image}` names no image",
            evidence=said,
            why="Layer: kubelet. A name is [registry/]path[:tag][@sha256:digest], in small letters.",
            fix=("correct it where the pod is written; a value that was never filled in is the usual cause",),
        )


@cluster_rule("KX109", title="the image may not be pulled and is not on the node", source=IMAGES)
def never(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX109"):
        yield Seen(
            title=f"{label(pod)}: {one.image} is not on node {text(pod, 'spec', 'nodeName')}, and may not be pulled",
            evidence=f"{said}; imagePullPolicy {text(one.spec, 'imagePullPolicy')}",
            why="Layer: kubelet. With imagePullPolicy Never it takes only what was loaded into the node's own "
            "container engine; docker's images on the same machine are not those of k3s or kind.",
            fix=(
                (
                    f"load it into the node, kind or k3s:\nkind load docker-image {one.image}\n"
                    f"docker save {one.image} | sudo k3s ctr images import -"
                ),
                patch_container(cluster, pod, one.name, "or let it be pulled", {"imagePullPolicy": "IfNotPresent"}),
            ),
        )
