"""On nodes of which processor an image runs, where it is not on all of them."""

from collections.abc import Mapping

from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.plan import Image, Plan

LABEL = "kubernetes.io/arch"
_ENDS = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""How tags and names end that are for what the label calls by the right name."""


def arch_of(image: Image | None, reference: str) -> str:
    """As the node's label says it; empty for an image of several, and for one that is not known."""
    name = reference.partition("@")[0]
    for word, arch in _ENDS.items():
        if name.endswith((f":{word}", f"-{word}", f"_{word}")):
            return arch
    if image is None or len(image.platforms) != 1 or not _is_of(reference, image):
        return ""
    return image.platforms[0].rpartition("/")[2]


def node_selector_of(plan: Plan, cluster: ClusterPlan) -> Mapping[str, str]:
    """What was asked for comes last: it wins."""
    arch = arch_of(plan.image, cluster.image)
    return {**({LABEL: arch} if arch else {}), **cluster.ask.node_selector}


def _is_of(reference: str, image: Image) -> bool:
    """Not an image that somebody named instead."""
    name = reference.partition("@")[0]
    name = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
    return name == image.name or name.endswith(f"/{image.name}")
