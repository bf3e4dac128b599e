"""Pods that were never made, for what they are: levels of security, webhooks, a namespace that goes."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from selfhost.doctor.cluster.mend import patch
from selfhost.doctor.cluster.refused import MAKERS, refused, short
from selfhost.doctor.cluster.rule import Said, Seen, Unsure, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    at,
    counted,
    cut,
    label,
    name,
    namespace,
    rows,
    text,
)
from selfhost.shapes.finding import RunOn

_CONSTRAINTS: Final = "https://docs.okd.io/latest/authentication/managing-security-context-constraints.html"
_WEBHOOKS: Final = "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/"
STANDARDS: Final = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"
_POINTS: Final = (
    ("allowPrivilegeEscalation", {"allowPrivilegeEscalation": False}),
    ("unrestricted capabilities", {"capabilities": {"drop": ["ALL"]}}),
    ("runAsNonRoot", {"runAsNonRoot": True}),
    ("seccompProfile", {"seccompProfile": {"type": "RuntimeDefault"}}),
)  # fmt: skip
_SPLIT: Final = re.compile(r"(?<=\)), ")


@cluster_rule("KX401", title="Pod Security of the namespace refuses the pod", kinds=MAKERS, source=STANDARDS)
def pod_security(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX401"):
        match = re.search(r'violates PodSecurity "(?P<level>[^"]+)":\s*(?P<points>.*)', said, re.DOTALL)
        level = match["level"] if match else "its level"
        points = [point.strip() for point in _SPLIT.split(match["points"])] if match else []
        names = [point.partition(" (")[0] for point in points]
        yield Seen(
            title=f"{called}: no pod is made, for it violates PodSecurity {level} in {counted(len(points), 'point')}: "
            f"{', '.join(names)}",
            evidence=cut(said, 700),
            why=f"Layer: admission. The namespace {namespace(root)} takes only pods of that level. The Deployment was "
            "taken with a warning; its ReplicaSet is refused.",
            fix=(*_hardened(cluster, root, points), *_opened(cluster, root, names)),
        )


def _hardened(cluster: Cluster, root: Object, points: list[str]) -> Iterator[str]:
    """What the level wants to be said is said; what it does not allow is taken away."""
    own: dict[str, Any] = {}
    for word, setting in _POINTS:
        if any(word in point for point in points):
            own |= setting
    said = " ".join(points)
    if "non-default capabilities" in said:
        own["capabilities"] = {"add": None}
    pod: dict[str, Any] = {key: None for key in ("hostNetwork", "hostIPC", "hostPID") if f"{key}=true" in said}
    if "runAsNonRoot" in own and at(root, "spec", "template", "spec", "securityContext", "runAsUser") is None:
        pod["securityContext"] = {"runAsUser": 2000, "runAsGroup": 2000, "fsGroup": 2000}
    if "seccompProfile" in own and "pod must not set" in said:
        pod.setdefault("securityContext", {})["seccompProfile"] = own.pop("seccompProfile")
    if own:
        names = [text(each, "name") for each in rows(root, "spec", "template", "spec", "containers")]
        pod["containers"] = [{"name": each, "securityContext": own} for each in names]
    if pod:
        data = json.dumps({"spec": {"template": {"spec": pod}}}, separators=(",", ":"))
        user = " (the user 2000 is vllm/vllm-openai's own)" if "runAsNonRoot" in own else ""
        yield (
            f"say what the level wants{user}:\n"
            f"{cluster.in_(root)} patch {text(root, 'kind').lower()} {name(root)} -p '{data}'"
        )


def _opened(cluster: Cluster, root: Object, names: list[str]) -> Iterator[str]:
    said = " ".join(names)
    if "host namespaces" in said or "hostPath" in said or "hostPort" in said:
        yield (
            "drop hostNetwork, hostIPC and hostPath: an emptyDir with medium: Memory at /dev/shm does what hostIPC "
            "is copied for"
        )
    if "non-default capabilities" in said or ("seccompProfile" in said and "host namespaces" in said):
        yield (
            "SYS_PTRACE and an unconfined seccomp profile are needed for more than one AMD card only; drop them for one"
        )
    yield (
        "or, if the pod must be as it is, put it into a namespace that allows it:\n"
        f"{cluster.kubectl} create namespace {namespace(root)}-privileged\n"
        f"{cluster.kubectl} label namespace {namespace(root)}-privileged pod-security.kubernetes.io/enforce=privileged"
    )


@cluster_rule("KX409", title="no security context constraint of OpenShift takes the pod", kinds=MAKERS,
              source=_CONSTRAINTS)  # fmt: skip
def constrained(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX409"):
        yield Seen(
            title=f"{called}: no pod is made, no security context constraint takes it",
            evidence=cut(said, 600),
            why="Layer: admission. restricted-v2 gives each namespace a range of user ids and refuses a pod that "
            "names another.",
            fix=(
                patch(cluster, root, "leave the user to OpenShift (and set USER and HOME in the container)",
                      {"securityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}}),
                ("or let its account use another constraint:\n"
                "oc adm policy add-scc-to-user nonroot-v2 -z "
                f"{text(root, 'spec', 'template', 'spec', 'serviceAccountName') or 'default'} -n {namespace(root)}"),
            ),
        )  # fmt: skip


@cluster_rule("KX408", title="an admission webhook or policy refuses the pod", kinds=MAKERS,
              source=_WEBHOOKS)  # fmt: skip
def webhook(cluster: Cluster, one: Object) -> Iterator[Said]:
    for _, called, said in refused(cluster, one, "KX408"):
        match = re.search(r'webhook "([^"]+)"', said)
        silent = "failed calling webhook" in said
        yield Seen(
            title=f"{called}: no pod is made, "
            + (
                f"the webhook {match[1] if match else ''} does not answer"
                if silent
                else f"{match[1] if match else 'a policy'} denies it"
            ),
            evidence=cut(said, 400),
            why="Layer: admission. "
            + (
                "Its service is down, and its failurePolicy is Fail."
                if silent
                else "It is a rule of this cluster; its words say which."
            ),
            fix=(
                (
                    f"see which there are:\n{cluster.kubectl} get "
                    "validatingwebhookconfigurations,mutatingwebhookconfigurations"
                ),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule("KX412", title="the namespace is being deleted", kinds=(*MAKERS, "Namespace"),
              source="https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/")  # fmt: skip
def namespace_going(cluster: Cluster, one: Object) -> Iterator[Said]:
    if text(one, "kind") == "Namespace":
        if text(one, "status", "phase") != "Terminating":
            return
        told = [text(each, "message") for each in rows(one, "status", "conditions") if each.get("status") == "True"]
        pods = cluster.of("Pod", name(one))
        if pods or told:
            yield Seen(
                title=f"namespace {name(one)} is being deleted, and is not gone",
                evidence=cut("; ".join(told), 400) or f"{counted(len(pods), 'pod')} left",
                why="Layer: API server. Nothing can be made in it any more; objects with finalizers keep it.",
                fix=(
                    f"see what is left:\n{cluster.kubectl} -n {name(one)} get all,pvc",
                    "use another namespace until it is gone",
                ),
            )
        return
    for root, called, said in refused(cluster, one, "KX412"):
        yield Seen(
            title=f"{called}: no pod is made, namespace {namespace(root)} is being deleted",
            evidence=cut(said, 300),
            why="Layer: API server. Nothing can be made in a namespace that is going.",
            fix=(
                (
                    f"use another namespace, or wait until it is gone and make it anew:\n{cluster.kubectl} get "
                    f"namespace {namespace(root)}"
                ),
            ),
        )


@cluster_rule("KX411", title="the API server refuses to make the pod", kinds=MAKERS,
              source="https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/")  # fmt: skip
def otherwise(cluster: Cluster, one: Object) -> Iterator[Said]:
    if counted_ := short(cluster, one):
        yield Unsure(f"{label(one)} has made {counted_} pods, and nothing says why: events are kept for an hour")
    for _, called, said in refused(cluster, one, "KX411"):
        yield Seen(
            title=f"{called}: no pod is made: {cut(said.rpartition('forbidden: ')[2] or said, 120)}",
            evidence=cut(said, 500),
            why="Layer: API server. The controller asks again and again and is refused; the Deployment itself only "
            "counts 0 pods.",
            fix=(f"see all that it says:\n{cluster.in_(one)} describe {text(one, 'kind').lower()} {name(one)}",),
        )
