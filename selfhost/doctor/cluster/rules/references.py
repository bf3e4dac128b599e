"""Pods that were never made, for what they name: classes and accounts that are not there, claims in an old form."""

import re
from collections.abc import Iterator

from selfhost.doctor.cluster.mend import patch
from selfhost.doctor.cluster.refused import MAKERS, refused
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    cut,
    name,
    namespace,
    text,
)


@cluster_rule("KX404", title="pods are refused: the RuntimeClass does not exist", kinds=MAKERS,
              source="https://kubernetes.io/docs/concepts/containers/runtime-class/")  # fmt: skip
def no_runtime_class(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX404"):
        match = re.search(r'RuntimeClass "?([\w.-]+)', said)
        yield Seen(
            title=f"{called}: no pod is made, the cluster has no RuntimeClass {match[1] if match else ''}".rstrip(),
            evidence=f"{cut(said, 300)}; classes: "
            f"{', '.join(name(each) for each in cluster.of('RuntimeClass')) or 'none'}",
            why="Layer: admission. Operators that let cards in by CDI need none and make none.",
            fix=(patch(cluster, root, "leave it out", {"runtimeClassName": None}),),
        )


@cluster_rule("KX405", title="pods are refused: the PriorityClass does not exist", kinds=MAKERS,
              source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/")  # fmt: skip
def no_priority(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX405"):
        match = re.search(r"with name ([\w.-]+)", said)
        known = ", ".join(name(each) for each in cluster.of("PriorityClass"))
        yield Seen(
            title=f"{called}: no pod is made, the cluster has no PriorityClass {match[1] if match else ''}".rstrip(),
            evidence=f"{cut(said, 300)}; classes: {known or 'unknown'}",
            why="Layer: admission. A class is made by the cluster's admin, and has the same name for every namespace.",
            fix=(
                patch(cluster, root, "leave it out", {"priorityClassName": None}),
                f"or name one:\n{cluster.kubectl} get priorityclass",
            ),
        )


@cluster_rule("KX406", title="pods are refused: the ServiceAccount does not exist", kinds=MAKERS,
              source="https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/")  # fmt: skip
def no_account(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX406"):
        match = re.search(r'serviceaccount "([^"]+)"', said)
        account = match[1] if match else text(root, "spec", "template", "spec", "serviceAccountName")
        yield Seen(
            title=f"{called}: no pod is made, there is no ServiceAccount {account} in {namespace(root)}",
            evidence=cut(said, 300),
            why="Layer: admission. An account is of one namespace, and is not made by naming it.",
            fix=(
                f"make it:\n{cluster.in_(root)} create serviceaccount {account}",
                patch(cluster, root, "or leave it out", {"serviceAccountName": None, "serviceAccount": None}),
            ),
        )


@cluster_rule("KX513", title="the pod's resource claims are written as before Kubernetes 1.31", kinds=MAKERS,
              source="https://github.com/Project-HAMi/k8s-dra-driver/issues/5")  # fmt: skip
def old_claims(cluster: Cluster, one: Object) -> Iterator[Said]:
    for _, called, said in refused(cluster, one, "KX513"):
        yield Seen(
            title=f"{called}: no pod is made, its resourceClaims are written for Kubernetes <=1.30",
            evidence=cut(said, 300),
            why="Layer: API server. `resourceClaims[].source.resourceClaimTemplateName` lost its `source` in 1.31.",
            fix=("write it flat:\nresourceClaims:\n  - name: gpus\n    resourceClaimTemplateName: TEMPLATE",),
        )
