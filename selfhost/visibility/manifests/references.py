"""Objects that a pod names and that are not there: by the cluster that is known, or by a name that is nearly one."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility import cluster
from selfhost.visibility.manifests.claims import elements
from selfhost.visibility.manifests.storage import volumes
from selfhost.visibility.objects import Container, Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

SECRETS = "https://kubernetes.io/docs/concepts/configuration/secret/#using-secrets-as-environment-variables"
CLASSES = "https://kubernetes.io/docs/concepts/storage/storage-classes/"
_SURELY_NEAR = 0.9
_NEAR = 0.75
_BUILT_IN = {
    "PriorityClass": ("system-cluster-critical", "system-node-critical"),
    "ServiceAccount": ("default",),
    "ConfigMap": ("kube-root-ca.crt",),
}
_WIDE = ("PriorityClass", "StorageClass", "RuntimeClass")
"""Kinds without a namespace."""
_LATE = "The API server does not look; the kubelet does: `CreateContainerConfigError"
_SAID = {
    "PriorityClass": "The API server refuses the pod: `no PriorityClass with name {name} was found`.",
    "Secret": _LATE + ': secret "{name}" not found`.',
    "ConfigMap": _LATE + ': configmap "{name}" not found`.',
    "PersistentVolumeClaim": 'The pod stays Pending: `persistentvolumeclaim "{name}" not found`.',
    "ServiceAccount": 'The pod is never created: `serviceaccount "{name}" not found`.',
    "ResourceClaimTemplate": "The pod stays Pending: `FailedResourceClaimCreation … resourceclaimtemplate "
    '"{name}" not found`.',
    "ResourceClaim": "The pod stays Pending: its claim does not exist.",
    "RuntimeClass": 'The API server refuses the pod: `RuntimeClass "{name}" not found`.',
}


@dataclass(frozen=True, slots=True)
class Reference:
    kind: str
    tree: Tree
    """The name, where it stands."""


def references(pod: Pod) -> Iterator[Reference]:
    """What must be there for the pod to start: nothing optional, and no imagePullSecrets, which are passed over."""
    spec = pod.spec
    for key, kind in (
        ("priorityClassName", "PriorityClass"),
        ("serviceAccountName", "ServiceAccount"),
        ("runtimeClassName", "RuntimeClass"),
    ):
        if (tree := spec.at(key)) is not None:
            yield Reference(kind, tree)
    for claim in elements(spec, "resourceClaims"):
        for key, kind in (
            ("resourceClaimTemplateName", "ResourceClaimTemplate"),
            ("resourceClaimName", "ResourceClaim"),
        ):
            if (tree := claim.at(key)) is not None:
                yield Reference(kind, tree)
    for volume in volumes(pod).values():
        yield from _of_volume(volume)
    for container in pod.containers:
        yield from _of_container(container)


def _of_container(container: Container) -> Iterator[Reference]:
    for entry in elements(container.tree, "env"):
        yield from _chosen(entry.at("valueFrom", "secretKeyRef"), "Secret", "name")
        yield from _chosen(entry.at("valueFrom", "configMapKeyRef"), "ConfigMap", "name")
    for entry in elements(container.tree, "envFrom"):
        yield from _chosen(entry.at("secretRef"), "Secret", "name")
        yield from _chosen(entry.at("configMapRef"), "ConfigMap", "name")


def _of_volume(volume: Tree) -> Iterator[Reference]:
    yield from _chosen(volume.at("persistentVolumeClaim"), "PersistentVolumeClaim", "claimName")
    yield from _chosen(volume.at("secret"), "Secret", "secretName")
    yield from _chosen(volume.at("configMap"), "ConfigMap", "name")
    for source in elements(volume.at("projected"), "sources"):
        yield from _chosen(source.at("secret"), "Secret", "name")
        yield from _chosen(source.at("configMap"), "ConfigMap", "name")


def _chosen(tree: Tree | None, kind: str, key: str) -> Iterator[Reference]:
    if tree is not None and not tree.yes("optional") and (named := tree.at(key)) is not None and named.text:
        yield Reference(kind, named)


@manifest_rule("KX459", Severity.ERROR, source=SECRETS)
def nothing_of_that_name(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    for pod in manifests.pods:
        seen: set[tuple[str, str]] = set()
        for reference in references(pod):
            kind, name = reference.kind, reference.tree.text
            if (kind, name) in seen or not name or "$" in name or "{{" in name or name in _BUILT_IN.get(kind, ()):
                continue
            seen.add((kind, name))
            if manifests.named(kind, name, "" if kind in _WIDE else pod.namespace) is not None:
                continue
            live = _live(host, kind, pod.namespace)
            near = _near(name, live, _NEAR)
            if live and kind != "RuntimeClass":  # DV031 says it of a cluster
                if name not in live:
                    yield _missing(pod, reference, f"in the cluster: {', '.join(sorted(live)[:6])}", near, None)
                continue
            beside = _beside(manifests, kind, pod.namespace)
            near = _near(name, [one for one in beside if not _is_used(manifests, kind, one)], _SURELY_NEAR)
            if near and not live and not _is_made(manifests, name):
                yield _missing(
                    pod, reference, f"in these files: {', '.join(sorted(beside)[:6])}", near, Severity.WARNING
                )


@manifest_rule("KX472", Severity.ERROR, source=CLASSES)
def no_such_storage_class(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    known = _live(host, "StorageClass", "")
    for thing in manifests.kind("PersistentVolumeClaim", "StatefulSet", "LeaderWorkerSet"):
        templates = thing.at("spec", "volumeClaimTemplates") or thing.at(
            "spec", "leaderWorkerTemplate", "volumeClaimTemplates"
        )
        for claim in templates.elements() if templates is not None else (thing,):
            tree = claim.at("spec", "storageClassName")
            wanted = tree.text if tree is not None and tree.is_scalar else ""
            if not known or not wanted or wanted in known or "$" in wanted or "{{" in wanted:
                continue
            if manifests.named("StorageClass", wanted, "") is not None:
                continue
            yield Found(
                title=f"{label(thing)} names a StorageClass {wanted} that the cluster does not have",
                place=place(thing, tree),
                evidence=f"classes: {', '.join(sorted(known)[:6])}",
                why=f'The claim stays Pending: `storageclass.storage.k8s.io "{wanted}" not found`.',
                fix=(f"name one that there is: {_near(wanted, known, _NEAR) or min(known)}",),
            )


def _live(host: Host | None, kind: str, namespace: str) -> list[str]:
    """Names of that kind where the pod goes, anywhere where it does not say; empty where nobody has looked."""
    found = [
        (str(cluster.at(one, "metadata", "name")), str(cluster.at(one, "metadata", "namespace") or ""))
        for one in cluster.objects(host, kind)
    ]
    if kind in _WIDE:
        return [name for name, _ in found]
    return [name for name, own in found if not namespace or own == namespace]


def _beside(manifests: Manifests, kind: str, namespace: str) -> list[str]:
    found = manifests.kind(kind)
    return [
        one.said("metadata", "name")
        for one in found
        if kind in _WIDE or not namespace or one.said("metadata", "namespace") in ("", namespace)
    ]


def _is_used(manifests: Manifests, kind: str, name: str) -> bool:
    return any(one.kind == kind and one.tree.text == name for pod in manifests.pods for one in references(pod))


def _is_made(manifests: Manifests, name: str) -> bool:
    """By a controller: cert-manager's Certificate, an ExternalSecret, a SealedSecret."""
    makers = ("Certificate", "ExternalSecret", "SealedSecret", "VaultStaticSecret")
    return any(
        name in (maker.said("spec", "secretName"), maker.said("spec", "target", "name"), maker.said("metadata", "name"))
        for maker in manifests.kind(*makers)
    )


def _near(name: str, known: list[str], cutoff: float) -> str:
    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else ""


def _missing(pod: Pod, reference: Reference, known: str, near: str, severity: Severity | None) -> Found:
    kind, name = reference.kind, reference.tree.text
    return Found(
        title=f"{label(pod.holder)} names a {kind} {name} that is not there"
        + (f": did you mean {near}?" if near else ""),
        place=pod.place(reference.tree),
        evidence=f"{kind} {name} · {known}",
        why=_SAID[kind].format(name=name),
        fix=(
            f"write the name that there is: {near}"
            if near
            else f"create it, or name one that there is:\nkubectl get {kind.lower()}",
        ),
        severity=severity,
    )
