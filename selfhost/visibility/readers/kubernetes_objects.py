"""Where the pods stand inside the kinds of Kubernetes objects that run some."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selfhost.core.tree import Tree

_TEMPLATE: Final = ("spec", "template")
_RAY: Final = (("headGroupSpec", "template"), ("workerGroupSpecs", "*", "template"))

_TEMPLATES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "Pod": ((),),
    "PodTemplate": (("template",),),
    **dict.fromkeys(
        (
            "Deployment",
            "StatefulSet",
            "DaemonSet",
            "ReplicaSet",
            "ReplicationController",
            "Job",
            "Service",
            "Configuration",
            "Rollout",
            "CloneSet",
        ),
        (_TEMPLATE,),
    ),
    "CronJob": (("spec", "jobTemplate", "spec", "template"),),
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
    "JobSet": (("spec", "replicatedJobs", "*", "template", "spec", "template"),),
    "RayCluster": tuple(("spec", *steps) for steps in _RAY),
    "RayService": tuple(("spec", "rayClusterConfig", *steps) for steps in _RAY),
    "RayJob": tuple(("spec", "rayClusterSpec", *steps) for steps in _RAY),
    **dict.fromkeys(
        ("PyTorchJob", "MPIJob", "TFJob"),
        tuple(("spec", name, "*", "template") for name in ("pytorchReplicaSpecs", "mpiReplicaSpecs", "tfReplicaSpecs")),
    ),
}
"""Paths to what has a `spec` with containers; `*` is every element. Only Knative's Service has a template."""

_SPECS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "InferenceService": (
        ("spec", "predictor"),
        ("spec", "predictor", "workerSpec"),
        ("spec", "transformer"),
        ("spec", "explainer"),
    ),
    "LLMInferenceService": (
        ("spec", "template"),
        ("spec", "worker"),
        ("spec", "prefill", "template"),
        ("spec", "prefill", "worker"),
    ),
    **dict.fromkeys(("ServingRuntime", "ClusterServingRuntime"), (("spec",), ("spec", "workerSpec"))),
}
"""Paths straight to what holds the containers."""


@dataclass(frozen=True, slots=True)
class PodAt:
    """One pod: the object that holds it, its spec, and what stands beside that (its own metadata)."""

    holder: Tree
    spec: Tree
    metadata: Tree | None


def objects(documents: tuple[Tree, ...]) -> Iterator[Tree]:
    """Every object, those inside lists too."""
    for document in documents:
        items = document.at("items")
        if document.said("kind").endswith("List") and items is not None and items.list is not None:
            yield from objects(tuple(items.list))
        elif document.list is not None:
            yield from objects(tuple(document.list))
        elif document.map is not None:
            yield document


def pods(holder: Tree) -> Iterator[PodAt]:
    """The pods of one object; none for a kind that runs none."""
    kind = holder.said("kind")
    for steps in _TEMPLATES.get(kind, ()):
        for template in _follow(holder, steps):
            spec = template.at("spec")
            if spec is not None and spec.map is not None:
                yield PodAt(holder, spec, template.at("metadata"))
    for steps in _SPECS.get(kind, ()):
        for spec in _follow(holder, steps):
            if spec.map is not None:
                yield PodAt(holder, spec, None)


def _follow(tree: Tree, steps: tuple[str, ...]) -> Iterator[Tree]:
    if not steps:
        yield tree
    elif steps[0] == "*":
        for element in tree.list if tree.list is not None else (tree.map or {}).values():
            yield from _follow(element, steps[1:])
    else:
        found = tree.at(steps[0])
        if found is not None:
            yield from _follow(found, steps[1:])
