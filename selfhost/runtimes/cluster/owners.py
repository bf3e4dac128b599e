"""Whose an object is: ours, another release's, Argo's or Flux's; and who owns one of its fields. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

NAME_LABEL = "io.selfhost.name"
DIGEST_LABEL = "io.selfhost.digest"
MANAGER = "selfhost"
_OURS = (MANAGER, "helm")
_GITOPS = {
    "argocd.argoproj.io/": "Argo CD",
    "kustomize.toolkit.fluxcd.io/": "Flux (Kustomization)",
    "helm.toolkit.fluxcd.io/": "Flux (HelmRelease)",
}


def labels(one: Mapping[str, Any]) -> Mapping[str, str]:
    return _texts(one, "labels")


def annotations(one: Mapping[str, Any]) -> Mapping[str, str]:
    return _texts(one, "annotations")


def _texts(one: Mapping[str, Any], key: str) -> Mapping[str, str]:
    found = (one.get("metadata") or {}).get(key)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def shown(one: Mapping[str, Any]) -> str:
    """`Deployment qwen3-4b`."""
    return f"{one.get('kind') or 'object'} {(one.get('metadata') or {}).get('name') or '?'}"


def is_ours(one: Mapping[str, Any], name: str) -> bool:
    return labels(one).get(NAME_LABEL) == name


def gitops(one: Mapping[str, Any]) -> tuple[str, str]:
    """Who keeps this object as a repository says, and the mark by which it is known; empty for nobody."""
    for key, value in (*labels(one).items(), *annotations(one).items()):
        for prefix, who in _GITOPS.items():
            if key.startswith(prefix):
                return who, f"{key}: {value}"
    return "", ""


def helm_release(one: Mapping[str, Any]) -> str:
    """The release that Helm made it for; empty for none."""
    if labels(one).get("app.kubernetes.io/managed-by") != "Helm":
        return ""
    return annotations(one).get("meta.helm.sh/release-name", "")


def owner_of_replicas(one: Mapping[str, Any]) -> str:
    """Who but us set the number of replicas: `kubectl`, `kube-controller-manager` (an autoscaler); empty for nobody."""
    return next(_holders(one, ("f:spec", "f:replicas")), "")


def _holders(one: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for entry in (one.get("metadata") or {}).get("managedFields") or ():
        manager = str(entry.get("manager") or "")
        if (manager, entry.get("operation")) in ((MANAGER, "Apply"), ("helm", "Apply"), ("helm", "Update")):
            continue
        tree: Any = entry.get("fieldsV1") or {}
        for step in path:
            tree = tree.get(step) if isinstance(tree, dict) else None
        if tree is not None:
            yield manager or "somebody"
