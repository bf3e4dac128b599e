"""Which fields the objects of the Kubernetes API have, and of what type: fields.txt, read once."""

import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

_GROUPS: Final = {"": "core", "rbac.authorization.k8s.io": "rbac"}
_VERSIONED: Final = re.compile(r"v\d+(?:(?:alpha|beta)\d+)?\Z")
RETIRED: Final = {
    ("extensions/v1beta1", ""): "apps/v1",
    ("apps/v1beta1", ""): "apps/v1",
    ("apps/v1beta2", ""): "apps/v1",
    ("batch/v1beta1", "CronJob"): "batch/v1",
    ("policy/v1beta1", "PodDisruptionBudget"): "policy/v1",
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"): "autoscaling/v2",
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler"): "autoscaling/v2",
    ("networking.k8s.io/v1beta1", "Ingress"): "networking.k8s.io/v1",
    ("node.k8s.io/v1beta1", "RuntimeClass"): "node.k8s.io/v1",
    ("scheduling.k8s.io/v1beta1", "PriorityClass"): "scheduling.k8s.io/v1",
    ("resource.k8s.io/v1alpha2", ""): "resource.k8s.io/v1",
    ("resource.k8s.io/v1alpha3", "ResourceClaim"): "resource.k8s.io/v1",
    ("resource.k8s.io/v1alpha3", "ResourceClaimTemplate"): "resource.k8s.io/v1",
}
"""API versions that no cluster from 1.32 on serves, by kind or for all kinds, and what came after
(kubernetes.io/docs/reference/using-api/deprecation-guide)."""


@dataclass(frozen=True, slots=True)
class Field:
    """`kind` as in fields.txt: a letter, the name of another type, `[` or `{` and one of these."""

    kind: str
    required: bool


@cache
def _table() -> dict[str, str]:
    text = files("selfhost.visibility.manifests").joinpath("fields.txt").read_text(encoding="utf-8")
    lines = (line.partition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: rest for name, _, rest in lines}


@cache
def fields(name: str) -> dict[str, Field]:
    """Fields of one type; empty for a name that is none."""
    found = {}
    for word in _table().get(name, "").split():
        field, _, kind = word.partition("=")
        found[field] = Field(kind.removesuffix("!"), kind.endswith("!"))
    return found


def type_of(api_version: str, kind: str) -> str:
    """The type of an object; empty for one that we have no fields of."""
    group, _, version = api_version.rpartition("/")
    if not _VERSIONED.match(version):
        return ""
    name = f"{_GROUPS.get(group, group.partition('.')[0])}.{version}.{kind}"
    own = group in _GROUPS or "." not in group or group.endswith(".k8s.io")
    return name if own and name in _table() else ""


@cache
def kinds() -> dict[str, tuple[str, ...]]:
    """Every kind of the API, by the API version that it is served in."""
    found: dict[str, tuple[str, ...]] = {}
    for word in _table()["kinds"].split():
        version, _, kind = word.partition("=")
        found[version] = (*found.get(version, ()), kind)
    return found


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """The known word that a slip of the fingers may have meant; empty when there is none."""
    same = [one for one in known if _plain(one) == _plain(word)]
    close = same or difflib.get_close_matches(word, known, n=1, cutoff=0.74)
    return close[0] if close else ""


def _plain(word: str) -> str:
    return re.sub(r"[^a-z]", "", word.lower())
