"""What doctor says of a few objects, in short."""

from collections.abc import Sequence

from selfhost.doctor.area import Area
from selfhost.doctor.areas.kubernetes import cluster_area
from selfhost.doctor.cluster.state import Cluster
from selfhost.shapes.finding import Finding, Severity
from tests.doctor.cluster_objects import Object


def area(*objects: Object, target: str = "", namespace: str = "") -> Area:
    return cluster_area(Cluster(objects), target=target, namespace=namespace)


def causes(*objects: Object, target: str = "") -> list[str]:
    """Ids of what is wrong, without what follows from it."""
    return [one.id for one in area(*objects, target=target).findings if one.severity is not Severity.INFO]


def first(*objects: Object, target: str = "") -> Finding:
    return area(*objects, target=target).findings[0]


def text(found: Finding) -> str:
    return "\n".join((found.title, found.evidence, found.why, *found.fix))


def words_in(objects: Sequence[Object]) -> str:
    return "\n".join(text(one) for one in area(*objects).findings)
