"""Claims, the volumes behind them and their classes. Pure."""

from typing import Final

from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, at, name, text, texts, words

_DEFAULTS: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def volume_of(cluster: Cluster, claim: Object | None) -> Object | None:
    """The PersistentVolume that a claim is bound to."""
    called = text(claim, "spec", "volumeName") if claim is not None else ""
    return cluster.get("PersistentVolume", "", called) if called else None


def class_of(cluster: Cluster, claim: Object) -> Object | None:
    called = at(claim, "spec", "storageClassName")
    if called is None:
        return default_class(cluster)
    return cluster.get("StorageClass", "", str(called)) if called else None


def default_class(cluster: Cluster) -> Object | None:
    for one in cluster.of("StorageClass"):
        notes = texts(one, "metadata", "annotations")
        if any(notes.get(key) == "true" for key in _DEFAULTS):
            return one
    return None


def classes(cluster: Cluster) -> str:
    return ", ".join(name(one) for one in cluster.of("StorageClass"))


def pending(claim: Object) -> bool:
    return text(claim, "status", "phase") in ("Pending", "")


def modes(claim: Object) -> tuple[str, ...]:
    return words(claim, "spec", "accessModes")
