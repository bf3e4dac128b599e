"""Every map of an object together with the type that the API gives it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selfhost.core.tree import Tree
from selfhost.visibility.manifests.fields import fields, type_of
from selfhost.visibility.readers.kubernetes_objects import pods

PLAIN_PODS: Final = ("LeaderWorkerSet", "JobSet", "RayCluster", "RayService", "RayJob", "PyTorchJob", "MPIJob")
"""Kinds of other groups whose pods are the API's own."""


@dataclass(frozen=True, slots=True)
class Typed:
    type: str
    tree: Tree
    path: str


def typed(thing: Tree) -> Iterator[Typed]:
    """Of an object whose type is known, or of the pods of one that holds some."""
    name = type_of(thing.said("apiVersion"), thing.said("kind"))
    if name:
        yield from _walk(Typed(name, thing, ""))
    elif thing.said("kind") in PLAIN_PODS:
        for pod in pods(thing):
            yield from _walk(Typed("core.v1.PodSpec", pod.spec, "spec"))


def _walk(one: Typed) -> Iterator[Typed]:
    if one.tree.map is None:
        return
    yield one
    known = fields(one.type)
    for key, value in one.tree.items():
        field = known.get(key)
        if field is None:
            continue
        where = f"{one.path}.{key}" if one.path else key
        if field.kind[0] == "[" and len(field.kind) > 2:
            for number, element in enumerate(value.elements()):
                yield from _walk(Typed(field.kind[1:], element, f"{where}[{number}]"))
        elif field.kind[0] not in "[{" and len(field.kind) > 1:
            yield from _walk(Typed(field.kind, value, where))
