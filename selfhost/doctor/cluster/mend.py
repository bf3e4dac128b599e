"""Commands that mend a pod where its template stands. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, labels, name, part, quoted, text

_TEMPLATED: Final = ("Deployment", "StatefulSet", "DaemonSet")
_HELM: Final = "and in the chart's values, or the next upgrade takes it away"


def template(cluster: Cluster, pod: Object) -> Object | None:
    """The object whose template the pod was made from, where a patch of it makes new pods."""
    kinds = {text(one, "kind"): one for one in cluster.owners(pod)}
    return next((kinds[kind] for kind in _TEMPLATED if kind in kinds), None)


def patch(cluster: Cluster, pod: Object, what: str, spec: Mapping[str, Any]) -> str:
    """Set fields of the pod's spec: a merge, so that a list is given whole."""
    owner = template(cluster, pod) if text(pod, "kind") == "Pod" else pod
    if owner is None:
        return f"{what} (the pod is made anew for it; in its file, below spec:)\n{_yaml(spec)}"
    body = json.dumps({"spec": {"template": {"spec": spec}}}, separators=(",", ":"))
    kind = text(owner, "kind").lower()
    also = f" ({_HELM})" if labels(owner).get("app.kubernetes.io/managed-by") == "Helm" else ""
    return f"{what}{also}:\n{cluster.in_(owner)} patch {kind} {name(owner)} --type merge -p {quoted(body)}"


def patch_container(cluster: Cluster, pod: Object, container: str, what: str, fields: Mapping[str, Any]) -> str:
    """Set fields of one container: a strategic merge finds it by its name."""
    owner = template(cluster, pod) if text(pod, "kind") == "Pod" else pod
    spec = {"containers": [{"name": container, **fields}]}
    if owner is None:
        return f"{what} (the pod is made anew for it; in its file, below spec:)\n{_yaml(spec)}"
    body = json.dumps({"spec": {"template": {"spec": spec}}}, separators=(",", ":"))
    also = f" ({_HELM})" if labels(owner).get("app.kubernetes.io/managed-by") == "Helm" else ""
    return f"{what}{also}:\n{cluster.in_(owner)} patch {text(owner, 'kind').lower()} {name(owner)} -p {quoted(body)}"


def no_surge(cluster: Cluster, deployment: Object) -> str:
    """Server-side apply takes this over the default, which it doesn't do with Recreate."""
    body = '{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'
    return (
        "let the old pod go before the new one comes:\n"
        f"{cluster.in_(deployment)} patch deployment {name(deployment)} --type merge -p {quoted(body)}"
    )


def tolerations(pod: Object, key: str, effect: str) -> dict[str, Any]:
    kept = [
        dict(one)
        for one in part(pod, "spec").get("tolerations") or ()
        if not text(one, "key").startswith("node.kubernetes.io/")
    ]
    return {"tolerations": [*kept, {"key": key, "operator": "Exists", "effect": effect}]}


def describe(cluster: Cluster, one: Object, what: str) -> str:
    return f"{what}:\n{cluster.in_(one)} describe {text(one, 'kind').lower()} {name(one)}"


def delete(cluster: Cluster, one: Object, what: str) -> str:
    return f"{what}:\n{cluster.in_(one)} delete {text(one, 'kind').lower()} {name(one)}"


def logs(cluster: Cluster, pod: Object, container: str, what: str, *, previous: bool = True) -> str:
    last = " --previous" if previous else ""
    return f"{what}:\n{cluster.in_(pod)} logs {name(pod)} -c {container}{last}"


def _yaml(tree: Mapping[str, Any]) -> str:
    """JSON is YAML; small enough to read."""
    return json.dumps(tree)
