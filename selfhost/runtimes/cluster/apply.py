"""Server-side apply: objects as they are written, and what others own of them left alone."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from selfhost.runtimes.cluster.answers import ApiError, Cause
from selfhost.runtimes.cluster.client import APPLY, Cluster
from selfhost.runtimes.cluster.owners import MANAGER, owner_of_replicas

Object = dict[str, Any]
_ORDER = (
    "ServiceAccount", "Secret", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy", "Service",
    "ResourceClaimTemplate",
)  # fmt: skip
_LEFT = ".spec.replicas"
"""The one field that may be somebody else's without the deployment being another than planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One object after it was applied."""

    kind: str
    name: str
    state: str
    """`created`, `changed`, `unchanged`."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Fields that stay as somebody else set them, by path, with who it is."""


class Conflict(Exception):
    """Fields that others own: (field, who)."""

    def __init__(self, one: Mapping[str, Any], fields: Sequence[tuple[str, str]]) -> None:
        super().__init__(", ".join(path for path, _ in fields))
        self.object = dict(one)
        self.fields = tuple(fields)


def in_order(objects: Sequence[Object]) -> list[Object]:
    """What others refer to first."""
    return sorted(objects, key=_rank)


def apply_objects(cluster: Cluster, objects: Sequence[Object], *, force: bool = False) -> Iterator[Applied]:
    """Apply each in turn, what others refer to first. Raises ApiError, NoAnswer, NotServed, Conflict."""
    for one in in_order(objects):
        yield apply_object(cluster, one, force=force)


def apply_object(cluster: Cluster, one: Object, *, force: bool = False) -> Applied:
    path = cluster.path_of(one)
    before = cluster.find(path)
    left: dict[str, str] = {}
    wanted = copy.deepcopy(one)
    if before is not None and (who := owner_of_replicas(before)):
        left = _leave(wanted, {_LEFT: who})
    try:
        after = _patch(cluster, path, wanted, force=force)
    except ApiError as error:
        if not _is_conflict(error):
            raise
        fields = {cause.field: manager_of(cause) for cause in error.causes}
        left |= _leave(wanted, {path: who for path, who in fields.items() if path == _LEFT})
        others = [(path, who) for path, who in fields.items() if path != _LEFT]
        ours = all(who == "helm" for _, who in others)  # a release that is gone; one that is there upgrades by Helm
        if others and not ours:
            raise Conflict(one, others) from None
        after = _patch(cluster, path, wanted, force=force or ours)
    meta = one.get("metadata") or {}
    return Applied(kind=str(one.get("kind")), name=str(meta.get("name")), state=_state(before, after), left=left)


def prune(cluster: Cluster, *, name: str, kinds: Sequence[tuple[str, str]], keep: Sequence[Object]) -> Iterator[str]:
    """Remove what an earlier plan of this deployment had and this one has not; never a volume or a Secret."""
    kept = {(str(one.get("kind")), str((one.get("metadata") or {}).get("name"))) for one in keep}
    for one in ours(cluster, name=name, kinds=kinds):
        meta = one["metadata"]
        if (one["kind"], meta["name"]) not in kept and not meta.get("ownerReferences"):
            delete(cluster, one)
            yield f"{one['kind']} {meta['name']}"


def ours(cluster: Cluster, *, name: str, kinds: Sequence[tuple[str, str]]) -> Iterator[Object]:
    """Objects that carry the deployment's name, of these kinds."""
    for version, kind in kinds:
        where = cluster.resource(version, kind).path(cluster.namespace)
        for one in cluster.list(where, labelSelector=f"io.selfhost.name={name}"):
            yield {**one, "apiVersion": version, "kind": kind}


def delete(cluster: Cluster, one: Mapping[str, Any], *, grace_s: int | None = None) -> bool:
    """Ask for its removal, its dependents first; False when it is gone already."""
    body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
    if grace_s is not None:
        body["gracePeriodSeconds"] = grace_s
    try:
        cluster.request("DELETE", cluster.path_of(one), body)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


def manager_of(cause: Cause) -> str:
    """`conflict with "kubectl" with subresource "scale" using apps/v1`: kubectl."""
    parts = cause.message.split('"')
    return parts[1] if len(parts) > 1 else "another client"


def _patch(cluster: Cluster, path: str, one: Object, *, force: bool) -> Object:
    query = {"fieldManager": MANAGER, "force": force, "fieldValidation": "Strict"}
    return cluster.request("PATCH", path, one, query=query, content_type=APPLY)


def _is_conflict(error: ApiError) -> bool:
    return error.status == 409 and any(cause.reason == "FieldManagerConflict" for cause in error.causes)


def _leave(one: Object, fields: Mapping[str, str]) -> dict[str, str]:
    """Take the fields out of the object, so that the apply says nothing about them."""
    for path in fields:
        *steps, last = path.strip(".").split(".")
        tree: Any = one
        for step in steps:
            tree = tree.get(step) if isinstance(tree, dict) else None
        if isinstance(tree, dict):
            tree.pop(last, None)
    return dict(fields)


def _state(before: Object | None, after: Object) -> str:
    if before is None:
        return "created"
    versions = [(one.get("metadata") or {}).get("resourceVersion") for one in (before, after)]
    return "unchanged" if versions[0] == versions[1] else "changed"


def _rank(one: Object) -> int:
    kind = str(one.get("kind"))
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
