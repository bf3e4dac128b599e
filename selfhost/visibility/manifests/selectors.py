"""Selectors of pods: they find the pods of their own template, and never change."""

from collections.abc import Iterator, Mapping
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility import cluster
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

SELECTOR = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#selector"
EDITED = "https://github.com/vllm-project/aibrix/issues/1363"
_WITH_SELECTOR: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_CHANGING: Final = {
    "app.kubernetes.io/version": "the version of what runs",
    "helm.sh/chart": "the version of the chart",
    "chart": "the version of the chart",
    "version": "the version of what runs",
    "app.kubernetes.io/managed-by": "the tool that applies it",
    "heritage": "the tool that applies it",
    "pod-template-hash": "the ReplicaSet, which adds it itself",
}


def labels_in(tree: Tree | None) -> dict[str, str]:
    return {key: value.text for key, value in tree.items() if value.is_scalar} if tree is not None else {}


@manifest_rule("KX055", Severity.ERROR, source=SELECTOR)
def selector_misses_its_pods(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.kind(*_WITH_SELECTOR):
        selector, template = thing.at("spec", "selector"), thing.at("spec", "template")
        if selector is None or template is None:
            continue
        wanted, own = labels_in(selector.at("matchLabels")), labels_in(template.at("metadata", "labels"))
        unmet = _unmet(selector.at("matchExpressions"), own)
        wrong = [key for key, value in wanted.items() if own.get(key) != value]
        empty = not wanted and selector.at("matchExpressions") is None
        patch = template.at("metadata") is None and not any(pod.whole for pod in manifests.pods if pod.holder is thing)
        if patch or not (wrong or empty or unmet):
            continue
        key = wrong[0] if wrong else ""
        said = f"{key}: {wanted[key]} in the selector, {own.get(key) or 'absent'} in the template" if wrong else unmet
        yield Found(
            title=f"the selector of {label(thing)} does not match its own pods",
            place=place(thing, template.at("metadata", "labels") or selector),
            evidence=said or "empty",
            why="The API server refuses it: `selector does not match template labels`.",
            fix=(
                "give the template the labels of the selector:\nlabels:\n"
                + ("\n".join(f"  {name}: {value}" for name, value in wanted.items()) or "  app: NAME"),
            ),
        )


def _unmet(expressions: Tree | None, own: Mapping[str, str]) -> str:
    """The first expression that the labels do not meet, in words."""
    for each in expressions.elements() if expressions is not None else ():
        key, operator, values = each.said("key"), each.said("operator"), each.at("values")
        texts = [value.text for value in values.elements()] if values is not None else []
        met = {
            "In": own.get(key) in texts,
            "NotIn": own.get(key) not in texts,
            "Exists": key in own,
            "DoesNotExist": key not in own,
        }.get(operator, True)
        if not met and not any("{{" in text or "$" in text for text in (key, own.get(key, ""), *texts)):
            wanted = f"{key} {operator} {', '.join(texts)}".strip()
            return f"{wanted} in the selector, {own.get(key) or 'absent'} in the template"
    return ""


@manifest_rule("KX056", Severity.ERROR, source=EDITED)
def selector_edited(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """Against the object in the cluster, or against the other version of it among the texts."""
    for thing in manifests.kind(*_WITH_SELECTOR):
        name, namespace = thing.said("metadata", "name"), thing.said("metadata", "namespace")
        new = labels_in(thing.at("spec", "selector", "matchLabels"))
        if not new or not name:
            continue
        for live in cluster.objects(host, thing.said("kind")):
            if cluster.at(live, "metadata", "name") == name and (
                not namespace or cluster.at(live, "metadata", "namespace") == namespace
            ):
                old = cluster.texts(cluster.at(live, "spec", "selector", "matchLabels"))
                if old and old != new:
                    yield _edited(thing, old, new, "in the cluster")
        earlier = next(
            (
                other
                for other in manifests.kind(thing.said("kind"))
                if (other.path, other.line) < (thing.path, thing.line)
                and other.said("metadata", "name") == name
                and other.said("metadata", "namespace") == namespace
            ),
            None,
        )
        if earlier is not None:
            old = labels_in(earlier.at("spec", "selector", "matchLabels"))
            if old and old != new:
                yield _edited(thing, old, new, f"in {earlier.path}:{earlier.line}", Severity.WARNING)


def _edited(
    thing: Tree, old: Mapping[str, str], new: Mapping[str, str], where: str, severity: Severity | None = None
) -> Found:
    changed = [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
    shown = ", ".join(f"{key}: {old.get(key, 'absent')} → {new.get(key, 'absent')}" for key in changed)
    return Found(
        title=f"the selector of {label(thing)} differs from the one {where}",
        place=place(thing, thing.at("spec", "selector", "matchLabels")),
        evidence=f"old → new: {shown}",
        why="A selector never changes while the object lives: `spec.selector … field is immutable`, with `helm upgrade "
        "--force` too.",
        fix=(
            "keep the old selector, and put the new label on the pods only",
            (
                f"or replace the object, which stops what runs:\nkubectl delete {thing.said('kind').lower()} "
                f"{thing.said('metadata', 'name')}"
            ),
        ),
        severity=severity,
    )


@manifest_rule("KX057", Severity.WARNING, source=EDITED)
def selector_will_change(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.kind(*_WITH_SELECTOR):
        chosen = thing.at("spec", "selector", "matchLabels")
        for key, value in chosen.items() if chosen is not None else ():
            if key in _CHANGING and not (
                key == "version" and value.text in ("v1", "blue", "green", "stable", "canary")
            ):
                yield Found(
                    title=f"the selector of {label(thing)} has {key}, which changes with every upgrade",
                    place=place(thing, value),
                    evidence=f"{key}: {value.text}",
                    why=f"The label names {_CHANGING[key]}. A selector never changes while the object lives, so "
                    "the next version is refused: `spec.selector … field is immutable`.",
                    fix=(f"before the first install, take {key} out of spec.selector.matchLabels",),
                )
