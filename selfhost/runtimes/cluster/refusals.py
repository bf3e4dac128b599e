"""What an API server refused, or why nobody answered, as errors that a person can act on."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from selfhost.core.errors import Busy, EnvironmentMissing, InputError, SelfhostError
from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed
from selfhost.runtimes.cluster.client import Cluster

_FORBIDDEN = re.compile(r'cannot (?P<verb>\S+) resource "(?P<what>[^"]+)"(?: in API group "(?P<group>[^"]*)")?')
_CRDS = {
    "monitoring.coreos.com": "the Prometheus operator",
    "keda.sh": "KEDA",
    "gateway.networking.k8s.io": "the Gateway API",
    "resource.k8s.io": "dynamic resource allocation (Kubernetes 1.34 serves v1)",
    "inference.networking.k8s.io": "the Gateway API's inference extension",
    "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
}


@contextmanager
def naming(cluster: Cluster, doing: str) -> Iterator[None]:
    """Raise what goes wrong inside as an error for a person. `doing` as in `could not …`."""
    try:
        yield
    except (ApiError, NoAnswer, NotServed) as error:
        raise worded(error, cluster, doing=doing) from None


def worded(error: ApiError | NoAnswer | NotServed, cluster: Cluster, *, doing: str) -> SelfhostError:
    """`doing`: `apply Deployment qwen3-4b`."""
    if isinstance(error, NoAnswer):
        return _no_answer(error, cluster)
    if isinstance(error, NotServed):
        return _not_served(error, cluster)
    return _known(error, cluster) or InputError(
        f"the API server refused to {doing}",
        why=f"It answered {error.status} {error.reason}".rstrip() + ".",
        evidence=error.message,
        fix=(f"how they should look, the cluster tells:\n{cluster.kubectl} explain deployment.spec",),
        id="RT142",
    )


def _known(error: ApiError, cluster: Cluster) -> SelfhostError | None:
    if error.status in (401, 403):
        return _not_allowed(error, cluster)
    if "not declared in schema" in error.message or "unknown field" in error.message:
        return _older(error, cluster)
    if error.status in (429, 500, 502, 503, 504):
        return _ill(error, cluster)
    if error.status == 404 and error.details.get("kind") == "namespaces":
        return namespace_missing(cluster)
    return None


def _not_allowed(error: ApiError, cluster: Cluster) -> SelfhostError | None:
    found = _FORBIDDEN.search(error.message)
    if error.status == 401:
        return _unauthorized(error, cluster)
    if found is not None:
        group = f".{found['group']}" if found["group"] else ""
        return forbidden(cluster, [(found["verb"], found["what"] + group)], error.message)
    return namespace_terminating(cluster) if "being terminated" in error.message else None


def forbidden(cluster: Cluster, verbs: list[tuple[str, str]], evidence: str = "") -> EnvironmentMissing:
    """`verbs`: (verb, resource.group) that this account may not."""
    listed = ", ".join(f"{verb} {what}" for verb, what in verbs)
    return EnvironmentMissing(
        f"your account may not: {listed} (namespace {cluster.namespace}, context {cluster.context})",
        why="Layer: the cluster's RBAC. Nothing was applied.",
        evidence=evidence,
        fix=(
            f"give these lines to whoever runs the cluster:\nselfhost up --runtime kubernetes {_where(cluster)} --rbac",
            f"see what the account may do:\n{cluster.kubectl} auth can-i --list --namespace {cluster.namespace}",
        ),
        id="RT136",
    )


def namespace_missing(cluster: Cluster) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"there is no namespace `{cluster.namespace}` in the cluster of `{cluster.context}`",
        why="selfhost makes none: quotas and Pod Security of a namespace are its owner's.",
        fix=(
            f"make it:\n{cluster.kubectl} create namespace {cluster.namespace}",
            f"or take one that is there:\n{cluster.kubectl} get namespaces",
        ),
        id="RT137",
    )


def namespace_terminating(cluster: Cluster) -> Busy:
    return Busy(
        f"the namespace `{cluster.namespace}` is being deleted",
        why="Nothing can be created in it until it is gone; what holds it up stands in its conditions.",
        fix=(
            f"see what it waits for:\n{cluster.kubectl} describe namespace {cluster.namespace}",
            "or take another one:\nselfhost up MODEL --runtime kubernetes --namespace OTHER",
        ),
        id="RT138",
    )


def _where(cluster: Cluster) -> str:
    return f"--kube-context {cluster.context} --namespace {cluster.namespace}"


def _no_answer(error: NoAnswer, cluster: Cluster) -> EnvironmentMissing:
    where = cluster.server or "the API server"
    see = f"see whether kubectl reaches it:\n{cluster.kubectl} get --raw /readyz"
    if error.kind == "tls":
        return EnvironmentMissing(
            f"the certificate of {where} is not trusted",
            why=f"Layer: TLS between here and the API server: {error.why}.",
            fix=(f"fetch the kubeconfig anew; then:\n{cluster.kubectl} get --raw /readyz",),
            id="RT135",
        )
    what = {
        "timeout": f"{where} does not answer in time",
        "closed": f"{where} closed the connection",
    }.get(error.kind, f"{where} can't be reached")
    return EnvironmentMissing(
        f"{what} (context {cluster.context})",
        why=f"Layer: the network between here and the API server: {error.why}.",
        fix=(
            see,
            "perhaps a VPN or a tunnel is down, or this is not the context you mean:\nkubectl config get-contexts",
        ),
        id="RT134",
    )


def _unauthorized(error: ApiError, cluster: Cluster) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"{cluster.server or 'the API server'} does not accept the credentials of the context `{cluster.context}`",
        why="They have expired, or belong to another cluster.",
        evidence=error.message,
        fix=(f"log in anew with your provider's own tool; then:\n{cluster.kubectl} auth whoami",),
        id="RT133",
    )


def _not_served(error: NotServed, cluster: Cluster) -> EnvironmentMissing:
    group = error.api_version.partition("/")[0]
    who = next((who for key, who in _CRDS.items() if key == group), "")
    return EnvironmentMissing(
        f"the cluster knows no {error.kind} of {error.api_version}",
        why=f"It comes with {who}, which is not installed there."
        if who
        else "Its definition is not installed there, or the cluster is of another version.",
        fix=(
            f"see which it serves:\n{cluster.kubectl} api-resources --api-group={group}",
            "or leave out the option that asks for it",
        ),
        id="RT143",
    )


def _older(error: ApiError, cluster: Cluster) -> EnvironmentMissing:
    return EnvironmentMissing(
        "the cluster is too old for a field of these objects",
        why="Layer: the API server's own schema; selfhost writes for Kubernetes 1.27 and newer.",
        evidence=error.message,
        fix=(f"see its version:\n{cluster.kubectl} version", "have the cluster updated, or take another one"),
        id="RT142",
    )


def _ill(error: ApiError, cluster: Cluster) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"the API server of `{cluster.context}` has a trouble of its own ({error.status})",
        why=error.message or "It says no more.",
        fix=(f"see its own checks:\n{cluster.kubectl} get --raw '/readyz?verbose'", "then run the same command again"),
        id="RT153",
    )
