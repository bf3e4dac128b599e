"""Why pods are not made: it stands on what makes them, not on the Deployment. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    condition,
    label,
    number,
    text,
)

MAKERS: Final = (
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "ReplicationController",
    "LeaderWorkerSet",
    "Deployment",
)
_REASONS: Final = ("FailedCreate", "FailedCreatePod", "ReplicaSetCreateError", "FailedToCreatePod")
_KINDS: Final = (
    ("KX401", r"violates PodSecurity"),
    ("KX402", r"exceeded quota"),
    ("KX403", r"failed quota: .*must specify"),
    ("KX404", r'RuntimeClass "?[\w.-]+"? not found'),
    ("KX405", r"no PriorityClass with name"),
    ("KX406", r"error looking up service account|serviceaccount \"[^\"]+\" not found"),
    ("KX407", r"(?:maximum|minimum) [\w./-]+ usage per|LimitRange|limit to request ratio"),
    ("KX408", r"admission webhook|failed calling webhook|ValidatingAdmissionPolicy"),
    ("KX409", r"security context constraint"),
    ("KX412", r"is being terminated|because it is being terminated"),
    ("KX513", r"must specify one of: .*resourceClaim"),
)  # fmt: skip


def refusal(cluster: Cluster, one: Object) -> tuple[str, str] | None:
    """Kind and words of why pods of this object are not made; None where as many are there as are wanted.

    The condition is taken back when it is over; an event stays.
    """
    return cluster.once(("refusal", label(one)), lambda: _refusal(cluster, one))


def _refusal(cluster: Cluster, one: Object) -> tuple[str, str] | None:
    kind = text(one, "kind")
    wanted, made = _wanted(one, kind), _made(one, kind)
    failed = condition(one, "ReplicaFailure")
    current = text(failed, "status") == "True" and text(failed, "reason") != "FailedDelete"
    said = text(failed, "message") if current else ""
    if wanted <= made and not said:
        return None
    if kind == "Deployment":
        own = cluster.sets_of(one)
        if not said or any(refusal(cluster, each) for each in own):
            return None  # it stands on the ReplicaSet, nearer to the cause
    else:
        said = next((event.message for event in cluster.events(one) if event.reason in _REASONS), said)
    if not said:
        return None
    found = next((id_ for id_, pattern in _KINDS if re.search(pattern, said)), "KX411")
    return found, said


def short(cluster: Cluster, one: Object) -> str:
    """`1 of 2`, where fewer pods were made than are wanted and nobody says why; empty elsewhere."""
    kind = text(one, "kind")
    wanted, made = _wanted(one, kind), max(_made(one, kind), len(cluster.pods_of(one)))
    if kind == "Deployment" and cluster.sets_of(one):
        return ""  # its ReplicaSet says it
    return f"{made} of {wanted}" if made < wanted and refusal(cluster, one) is None else ""


def _wanted(one: Object, kind: str) -> int:
    if kind == "DaemonSet":
        return number(one, "status", "desiredNumberScheduled")
    return number(one, "spec", "parallelism" if kind == "Job" else "replicas", default=1)


def _made(one: Object, kind: str) -> int:
    if kind == "DaemonSet":
        return number(one, "status", "currentNumberScheduled")
    if kind == "Job":
        return sum(number(one, "status", key) for key in ("active", "succeeded", "failed"))
    return number(one, "status", "replicas")


def refused(cluster: Cluster, one: Object, kind: str) -> Iterator[tuple[Object, str, str]]:
    """The object to patch, its name in words, and what was said."""
    found = refusal(cluster, one)
    if found is not None and found[0] == kind:
        root = cluster.root(one)
        short = text(root, "kind") in MAKERS
        yield (root if short else one), label(root if short else one), found[1]


_POINTS: Final = (
    ("allowPrivilegeEscalation", {"allowPrivilegeEscalation": False}),
    ("unrestricted capabilities", {"capabilities": {"drop": ["ALL"]}}),
    ("runAsNonRoot", {"runAsNonRoot": True}),
    ("seccompProfile", {"seccompProfile": {"type": "RuntimeDefault"}}),
)  # fmt: skip
_SPLIT: Final = re.compile(r"(?<=\)), ")
