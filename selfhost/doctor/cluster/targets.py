"""Which objects of a cluster are looked at: all, a namespace's, or one and what belongs to it."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from selfhost.core.errors import InputError
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, label, labels, name, namespace, text

_KINDS: Final = {
    "pod": "Pod", "po": "Pod", "pods": "Pod",
    "deployment": "Deployment", "deploy": "Deployment", "deployments": "Deployment",
    "statefulset": "StatefulSet", "sts": "StatefulSet", "replicaset": "ReplicaSet", "rs": "ReplicaSet",
    "job": "Job", "daemonset": "DaemonSet", "ds": "DaemonSet",
    "leaderworkerset": "LeaderWorkerSet", "lws": "LeaderWorkerSet",
    "pvc": "PersistentVolumeClaim", "persistentvolumeclaim": "PersistentVolumeClaim",
    "node": "Node", "no": "Node",
}  # fmt: skip
_BY_NAME: Final = ("Deployment", "StatefulSet", "LeaderWorkerSet", "Job", "DaemonSet", "Pod")
_NODES: Final = ("Node",)
INSTANCE: Final = "app.kubernetes.io/instance"
_OURS: Final = "io.selfhost.name"


def is_target(word: str) -> bool:
    """`pod/NAME`, `deployment/NAME` and the like."""
    kind, slash, called = word.partition("/")
    return bool(slash) and kind.lower() in _KINDS and bool(called)


def chosen(cluster: Cluster, target: str, space: str) -> tuple[Object, ...]:
    """The object that is meant, its owners, pods, claims and nodes. Raises InputError where there is none."""
    found = list(_meant(cluster, target, space))
    if not found:
        raise _nothing(cluster, target, space)
    return tuple(_around(cluster, found))


def _meant(cluster: Cluster, target: str, space: str) -> Iterator[Object]:
    kind, slash, called = target.partition("/")
    if slash:
        kinds: tuple[str, ...] = (_KINDS[kind.lower()],)
        inner, _, last = called.partition("/")
        space, called = (inner, last) if last else (space, called)
    else:
        kinds, called = _BY_NAME, target
    for one in kinds:
        fitting = [
            each for each in cluster.of(one) if name(each) == called and (not space or namespace(each) in (space, ""))
        ]
        if fitting:
            yield from fitting
            return
    if not slash:
        own = [each for each in cluster.objects if called in (labels(each).get(INSTANCE), labels(each).get(_OURS))]
        yield from (each for each in own if text(each, "kind") in _BY_NAME)


def _around(cluster: Cluster, found: Iterable[Object]) -> Iterator[Object]:
    seen: set[str] = set()
    queue = list(found)
    while queue:
        one = queue.pop(0)
        if label(one) in seen:
            continue
        seen.add(label(one))
        yield one
        queue += cluster.owners(one)
        kind = text(one, "kind")
        if kind == "Pod":
            queue += [claim for _, claim in cluster.claims_of(one) if claim is not None]
            node = cluster.node_of(one)
            queue += [node] if node is not None else []
        elif kind not in ("Node", "PersistentVolumeClaim"):
            queue += cluster.sets_of(one)
            queue += _selecting(cluster, one)
            queue += cluster.pods_of(one)


def _selecting(cluster: Cluster, one: Object) -> Iterator[Object]:
    """Budgets, autoscalers and pools that speak of it."""
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        for each in cluster.of(kind, namespace(one)):
            if name(one) == text(each, "spec", "scaleTargetRef", "name"):
                yield each
    pods = {label(pod) for pod in cluster.pods_of(one)}
    for kind in ("PodDisruptionBudget", "InferencePool"):
        for each in cluster.of(kind, namespace(one)):
            selector = each.get("spec", {}).get("selector", {}) if isinstance(each.get("spec"), dict) else {}
            wanted = selector.get("matchLabels", selector) if isinstance(selector, dict) else {}
            plain = {str(key): str(value) for key, value in wanted.items()} if isinstance(wanted, dict) else {}
            if plain and pods & {label(pod) for pod in cluster.selected(namespace(one), plain)}:
                yield each


def everything(cluster: Cluster, space: str) -> tuple[Object, ...]:
    """Of one namespace, with the nodes; an empty one is all of them."""
    return tuple(one for one in cluster.objects if not space or namespace(one) in (space, ""))


def _nothing(cluster: Cluster, target: str, space: str) -> InputError:
    kind, slash, called = target.partition("/")
    kinds = (_KINDS[kind.lower()],) if slash else _BY_NAME
    called = called.rpartition("/")[2] if slash else target
    known = {name(one): one for each in kinds for one in cluster.of(each)}
    near = difflib.get_close_matches(called, known, n=3, cutoff=0.6)
    elsewhere = known.get(called)
    where = f" in namespace {space}" if space else ""
    shown = ", ".join(label(known[one]) for one in near)
    return InputError(
        f"there is no {kind.lower() if slash else 'deployment or pod'} {called}{where}",
        why=f"It is in namespace {namespace(elsewhere)}." if elsewhere is not None else
        (f"Perhaps it is one of {shown}." if shown else "Pods get a new name each time they are made."),
        fix=(f"see what there is:\n{cluster.kubectl} get pods {f'-n {space}' if space else '-A'}",),
        id="CF116",
    )  # fmt: skip
