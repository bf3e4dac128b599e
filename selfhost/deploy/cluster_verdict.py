"""Why a start stands still: doctor's rules over what the cluster says at this moment."""

from collections.abc import Mapping, Sequence
from typing import Any

from selfhost.core.errors import InputError
from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.diagnosis import read_for_diagnosis
from selfhost.shapes.finding import Finding

Object = Mapping[str, Any]


def verdict(cluster: Cluster, release: str) -> tuple[Finding, ...]:
    """Findings about this deployment, the cause first; none where the cluster does not answer."""
    try:
        read = read_for_diagnosis(cluster)
    except (ApiError, NoAnswer, NotServed):
        return ()
    return of_objects(
        read.objects, unread=read.unread, kubectl=cluster.kubectl, release=release, namespace=cluster.namespace
    )


def of_objects(
    objects: Sequence[Object],
    *,
    release: str,
    namespace: str,
    unread: Mapping[str, str] | None = None,
    kubectl: str = "kubectl",
) -> tuple[Finding, ...]:
    """As `verdict`, of objects that were read."""
    from selfhost.doctor.cluster.judge import judge  # at use: some dozens of rules
    from selfhost.doctor.cluster.state import Cluster as Seen
    from selfhost.doctor.cluster.targets import chosen

    seen = Seen(objects, unread=unread, kubectl=kubectl)
    try:
        meant = chosen(seen, f"deployment/{release}", namespace)
    except InputError:  # it is gone
        return ()
    return judge(seen, meant).findings
