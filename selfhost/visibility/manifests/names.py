"""Names and labels: how long, of which letters, none twice."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.fields import type_of
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

LABELS = "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"
NAMES = "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"
LWS = "https://github.com/kubernetes-sigs/lws/blob/main/site/content/en/docs/troubleshooting/_index.md"
SERVICE = "https://kubernetes.io/docs/concepts/services-networking/service/#defining-a-service"
CONTAINERS = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container"
LONGEST: Final = 63
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_SERVICE = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_HELD = re.compile(r"\$[({\w]|\{\{|<|__")
_FREE: Final = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
"""RBAC takes any name, colons too."""


def _open(text: str) -> bool:
    """Something that is yet to be filled in."""
    return _HELD.search(text) is not None


def slug(text: str, longest: int = LONGEST) -> str:
    """What the API would take in its place."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:longest].strip("-_.") or "model"


def _label_maps(thing: Tree) -> Iterator[Tree]:
    for path in (
        ("metadata", "labels"),
        ("spec", "template", "metadata", "labels"),
        ("spec", "selector", "matchLabels"),
        ("spec", "jobTemplate", "spec", "template", "metadata", "labels"),
        ("spec", "leaderWorkerTemplate", "leaderTemplate", "metadata", "labels"),
        ("spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "labels"),
        ("spec", "podSelector", "matchLabels"),
        *((("spec", "selector"),) if thing.said("kind") == "Service" else ()),
    ):
        found = thing.at(*path)
        if found is not None and found.map is not None:
            yield found


def _key_fault(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if _open(key):
        return ""
    if len(name) > LONGEST or not name or not _VALUE.match(name):
        return f"{len(name)} letters; {LONGEST} are the most" if len(name) > LONGEST else "letters that it may not have"
    return "its prefix is no domain" if slash and not _SUBDOMAIN.match(prefix) else ""


def _illegal_key(thing: Tree, labels: Tree, key: str, fault: str) -> Found:
    spot = labels.key_spot(key)
    return Found(
        title=f"{label(thing)} has a label {key} whose name is not allowed",
        place=place(thing, Tree(line=spot.line, column=spot.column, path=spot.path or labels.path)),
        evidence=f"{key} · {fault}",
        why="The API server refuses the object: a label's name is a domain and a slash, which may be left out, and 63 "
        "letters, digits, - _ and . behind it.",
        fix=("rename the label",),
    )


@manifest_rule("KX450", Severity.ERROR, source=LABELS)
def illegal_label(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        for labels in _label_maps(thing):
            for key, value in labels.items():
                text = value.text
                fault = _key_fault(key)
                if fault:
                    yield _illegal_key(thing, labels, key, fault)
                    continue
                if not value.is_scalar or value.is_null or _open(text):
                    continue
                if len(text.encode()) > LONGEST:
                    fault = f"{len(text.encode())} letters; {LONGEST} are the most"
                elif not _VALUE.match(text):
                    fault = "only letters, digits, - _ and . may stand in it, a letter or digit first and last"
                if fault:
                    yield Found(
                        title=f"the value of label {key} of {label(thing)} is not allowed",
                        place=place(thing, value),
                        evidence=f"{key}: {text} · {fault}",
                        why="The API server refuses the object. A model's id has a slash and grows long: it belongs "
                        "into an annotation, which takes any text.",
                        fix=(f"shorten it, and keep the whole in an annotation:\n{key}: {slug(text)}",),
                    )


@manifest_rule("KX451", Severity.ERROR, source=NAMES)
def illegal_hostname(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        for key in ("hostname", "subdomain"):
            value = pod.spec.at(key)
            text = pod.spec.said(key)
            if value is None or not text or _open(text):
                continue
            if len(text) > LONGEST or not _DNS_LABEL.match(text):
                yield Found(
                    title=f"{key} of {label(pod.holder)} is no host name that Kubernetes takes",
                    place=pod.place(value),
                    evidence=f"{key}: {text} · {len(text)} letters",
                    why=f"It is one label of DNS: at most {LONGEST} letters of a-z, 0-9 and -. A release's name and a "
                    "model's name joined are soon longer.",
                    fix=(
                        (
                            f"remove {key}, or shorten it:\n{key}: "
                            f"{slug(text.lower().replace('.', '-').replace('_', '-'))}"
                        ),
                    ),
                )


def _is_ours(thing: Tree) -> bool:
    """An object of a cluster by its group, not another tool's file in the same form."""
    version = thing.said("apiVersion")
    return bool(type_of(version, thing.said("kind"))) or ".k8s.io/" in version or ".x-k8s.io/" in version


@manifest_rule("KX452", Severity.ERROR, source=SERVICE)
def illegal_name(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        value, kind = thing.at("metadata", "name"), thing.said("kind")
        if value is None or not value.text or _open(value.text) or kind in _FREE or not _is_ours(thing):
            continue
        text = value.text
        if kind == "Service" and thing.said("apiVersion") == "v1":
            ok, said = bool(_SERVICE.match(text)) and len(text) <= LONGEST, "begin with a letter, a-z, 0-9 and -"
        elif kind in ("StatefulSet", "Namespace", "Job", "LeaderWorkerSet"):
            ok, said = bool(_DNS_LABEL.match(text)) and len(text) <= LONGEST, "be of a-z, 0-9 and -"
        else:
            ok, said = bool(_SUBDOMAIN.match(text)) and len(text) <= 253, "be of a-z, 0-9, - and ."
        if not ok:
            better = slug(text.lower().replace("_", "-"))
            better = better.replace(".", "-") if kind == "Service" else better
            better = f"m-{better}" if kind == "Service" and better[0].isdigit() else better
            yield Found(
                title=f"{kind} may not be called {text}",
                place=place(thing, value),
                evidence=f"metadata.name: {text}",
                why=f"The API server refuses the name: it must {said}, at most {LONGEST} letters for a Service.",
                fix=(f"name it otherwise, wherever it is referred to as well:\nname: {better}",),
            )


@manifest_rule("KX453", Severity.ERROR, source=LWS)
def name_too_long_for_its_pods(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """What a controller appends to the name has to fit too."""
    del host
    for thing in manifests.kind("LeaderWorkerSet"):
        name, replicas = thing.said("metadata", "name"), thing.at("spec", "replicas")
        count = replicas.scalar if replicas is not None and isinstance(replicas.scalar, int) else 1
        most = 52 - len(str(max(int(count) - 1, 0)))
        if name and not _open(name) and len(name) > most:
            yield Found(
                title=f"the name of {label(thing)} leaves no room for what is appended to it",
                place=place(thing),
                evidence=f"{len(name)} letters; {most} are the most with {count} replicas",
                why="Pods get the group's number and a hash behind the name, as a label of 63 letters at most: "
                "`metadata.labels: … must be no more than 63`, and no pod is ever made.",
                fix=(f"shorten it:\nname: {slug(name, most)}",),
            )


@manifest_rule("KX462", Severity.ERROR, source=CONTAINERS)
def named_twice(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        listed = [
            (what, key, [element for tree in trees if tree is not None for element in tree.elements()])
            for what, key, trees in (
                ("container", "name", (pod.spec.at("initContainers"), pod.spec.at("containers"))),
                ("volume", "name", (pod.spec.at("volumes"),)),
                ("claim", "name", (pod.spec.at("resourceClaims"),)),
                *(("mount path", "mountPath", (one.tree.at("volumeMounts"),)) for one in pod.containers),
            )
        ]
        for what, key, elements in listed:
            seen: set[str] = set()
            for element in elements:
                text = element.said(key)
                if text and text in seen:
                    yield Found(
                        title=f"two {what}s of {label(pod.holder)} are called {text}",
                        place=pod.place(element.at(key)),
                        evidence=f"{key}: {text}, a second time",
                        why="The API server refuses the pod: `Duplicate value`."
                        if what != "mount path"
                        else "The API server refuses the pod: `must be unique`.",
                        fix=("rename or remove one of them",),
                    )
                seen.add(text)
