"""What selfhost does in a cluster, as permissions: asked for before anything is applied, and printed to paste."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from selfhost.runtimes.cluster.answers import ApiError
from selfhost.runtimes.cluster.client import Cluster

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Verbs on one resource. `must`: without it `up` does not begin; the rest only makes its words poorer."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    must: bool = True
    namespaced: bool = True
    why: str = ""


_WRITE = ("get", "list", "create", "patch", "delete")
NEEDS = (
    Need(group="apps", resource="deployments", verbs=(*_WRITE, "watch"), why="the engine"),
    Need(group="batch", resource="jobs", verbs=_WRITE, why="the job that fetches weights"),
    Need(group="", resource="services", verbs=_WRITE),
    Need(group="", resource="serviceaccounts", verbs=_WRITE),
    Need(group="", resource="configmaps", verbs=_WRITE),
    Need(group="", resource="persistentvolumeclaims", verbs=_WRITE, why="weights; deleted only with --purge"),
    Need(
        group="",
        resource="secrets",
        verbs=("get", "create", "delete"),
        why="the API key. Helm keeps its releases in Secrets: it also needs list, update and patch",
    ),
    Need(group="networking.k8s.io", resource="networkpolicies", verbs=_WRITE),
    Need(group="", resource="pods", verbs=("get", "list", "watch"), why="how far it is"),
    Need(group="", resource="pods/log", verbs=("get",), why="the engine's log"),
    Need(group="", resource="pods/portforward", verbs=("get", "create"), why="the checks"),
    Need(group="apps", resource="replicasets", verbs=("get", "list", "watch"), must=False, why="why no pod is made"),
    Need(group="", resource="events", verbs=("list", "watch"), must=False, why="why a pod waits"),
    Need(group="", resource="resourcequotas", verbs=("list",), must=False),
    Need(group="", resource="limitranges", verbs=("list",), must=False),
    Need(group="", resource="nodes", verbs=("list",), must=False, namespaced=False, why="cards, labels, taints"),
    Need(group="", resource="namespaces", verbs=("get",), must=False, namespaced=False, why="Pod Security"),
    Need(group="node.k8s.io", resource="runtimeclasses", verbs=("list",), must=False, namespaced=False),
    Need(group="storage.k8s.io", resource="storageclasses", verbs=("list",), must=False, namespaced=False),
    Need(group="scheduling.k8s.io", resource="priorityclasses", verbs=("list",), must=False, namespaced=False),
    Need(group="resource.k8s.io", resource="deviceclasses", verbs=("list",), must=False, namespaced=False),
    Need(group="resource.k8s.io", resource="resourceslices", verbs=("list",), must=False, namespaced=False),
)
_MORE = {
    "Ingress": ("networking.k8s.io", "ingresses"),
    "HTTPRoute": ("gateway.networking.k8s.io", "httproutes"),
    "PodMonitor": ("monitoring.coreos.com", "podmonitors"),
    "ServiceMonitor": ("monitoring.coreos.com", "servicemonitors"),
    "ScaledObject": ("keda.sh", "scaledobjects"),
    "HorizontalPodAutoscaler": ("autoscaling", "horizontalpodautoscalers"),
    "PodDisruptionBudget": ("policy", "poddisruptionbudgets"),
    "ResourceClaimTemplate": ("resource.k8s.io", "resourceclaimtemplates"),
}


def needs_of(kinds: Sequence[str]) -> tuple[Need, ...]:
    """For objects of these kinds."""
    more = [
        Need(group=_MORE[kind][0], resource=_MORE[kind][1], verbs=_WRITE) for kind in sorted(set(kinds) & set(_MORE))
    ]
    return (*NEEDS, *more)


def missing(cluster: Cluster, needs: Sequence[Need]) -> list[tuple[str, str]]:
    """(verb, resource.group) that this account may not, of those without which nothing works. Raises ApiError."""
    asked = [(need, verb) for need in needs if need.must for verb in need.verbs]
    _ = cluster.api  # made once, before threads share it
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = list(pool.map(lambda one: _may(cluster, *one), asked))
    return [
        (verb, f"{need.resource}{f'.{need.group}' if need.group else ''}")
        for (need, verb), may in zip(asked, answers, strict=True)
        if not may
    ]


def _may(cluster: Cluster, need: Need, verb: str) -> bool:
    resource, _, sub = need.resource.partition("/")
    attributes = {"verb": verb, "group": need.group, "resource": resource, "namespace": cluster.namespace}
    if sub:
        attributes["subresource"] = sub
    if not need.namespaced:
        del attributes["namespace"]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = cluster.request("POST", _REVIEW, body)
    except ApiError as error:
        if error.status in (403, 404):  # an account may not even ask; then the deed itself tells
            return True
        raise
    return bool((answer.get("status") or {}).get("allowed"))


def rbac(namespace: str, *, name: str = "selfhost", user: str = "USER") -> str:
    """Role, ClusterRole and their bindings as YAML, with nothing beyond what is used."""
    here = [need for need in NEEDS if need.namespaced]
    wide = [need for need in NEEDS if not need.namespaced]
    subject = f"subjects:\n  - {{kind: User, name: {user}, apiGroup: rbac.authorization.k8s.io}}"
    return "\n".join(
        (
            f"# What `selfhost up --runtime kubernetes --namespace {namespace}` does. Put your user, group or service",
            "# account into the bindings. Helm keeps releases in Secrets: it also needs list, update, patch.",
            *_role("Role", name, here, namespace=namespace),
            "---",
            *_binding("Role", name, namespace=namespace),
            subject,
            "---",
            "# Reading only, of things that belong to no namespace: without it the plan must be told what nodes offer.",
            *_role("ClusterRole", f"{name}-read", wide),
            "---",
            *_binding("ClusterRole", f"{name}-read"),
            subject,
            "",
        )
    )


def _role(kind: str, name: str, needs: Sequence[Need], *, namespace: str = "") -> Iterator[str]:
    yield from ("apiVersion: rbac.authorization.k8s.io/v1", f"kind: {kind}")
    yield f"metadata: {{name: {name}{f', namespace: {namespace}' if namespace else ''}}}"
    yield "rules:"
    for need in needs:
        comment = f"  # {need.why}" if need.why else ""
        yield f'  - apiGroups: ["{need.group}"]{comment}'
        yield f"    resources: [{need.resource}]"
        yield f"    verbs: [{', '.join(need.verbs)}]"


def _binding(kind: str, name: str, *, namespace: str = "") -> Iterator[str]:
    yield from ("apiVersion: rbac.authorization.k8s.io/v1", f"kind: {kind}Binding")
    yield f"metadata: {{name: {name}{f', namespace: {namespace}' if namespace else ''}}}"
    yield f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}"
