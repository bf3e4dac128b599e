"""Objects of a Kubernetes cluster: what its nodes offer to pods. The functions over nodes are pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # rules read nodes with these functions too, and know no System
    from selfhost.core.system import System

Object = dict[str, object]
_PREFIXES = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
_NOT_CARDS = ("_monitoring", "/monitoring", "/millicores", "/memory.max", "/tiles", "nvidia.com/gpumem", "gpucores")


def read(system: "System") -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """Nodes, and everything else. Only a snapshot holds them: no cluster is asked unbidden."""
    held = flat(getattr(system, "kubernetes", ()))
    nodes = tuple(one for one in held if one.get("kind") == "Node")
    return nodes, tuple(one for one in held if one.get("kind") != "Node")


def flat(objects: Sequence[Any]) -> tuple[Object, ...]:
    """`kubectl get -o json` of several things is one List of them."""
    found: list[Object] = []
    for one in objects:
        if not isinstance(one, Mapping):
            continue
        items = one.get("items")
        kind = str(one.get("kind") or "")
        if isinstance(items, list) and (kind.endswith("List") or not kind):
            inner = kind.removesuffix("List")
            found += flat([{"kind": inner, **item} if inner else item for item in items if isinstance(item, Mapping)])
        else:
            found.append(dict(one))
    return tuple(found)


def name(node: Mapping[str, object]) -> str:
    return str(map_of(node.get("metadata")).get("name") or "")


def labels(node: Mapping[str, object]) -> Mapping[str, str]:
    return {str(key): str(value) for key, value in map_of(map_of(node.get("metadata")).get("labels")).items()}


def taints(node: Mapping[str, object]) -> tuple[Mapping[str, Any], ...]:
    found = map_of(node.get("spec")).get("taints")
    return tuple(one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()


def devices(node: Mapping[str, object]) -> Mapping[str, int]:
    """Devices that pods may ask for, by resource name, those that are none at the moment included."""
    return dict(_devices(map_of(map_of(node.get("status")).get("allocatable"))))


def _devices(allocatable: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for resource, quantity in allocatable.items():
        count = whole(quantity)
        if resource.startswith(_PREFIXES) and not resource.endswith(_NOT_CARDS) and count is not None:
            yield resource, count


def whole(quantity: object) -> int | None:
    """A quantity of devices, which the API gives as text."""
    found = re.fullmatch(r"(\d+)(k?)", str(quantity))
    return int(found[1]) * (1000 if found[2] else 1) if found else None


def replicas(node: Mapping[str, object]) -> int:
    """How many pods share one card by time slicing or MPS, 1 for none.

    `-SHARED` in the product's name does not tell: it is left out where the resource was renamed.
    """
    said = [whole(labels(node).get("nvidia.com/gpu.replicas", "")) or 1]
    count = whole(labels(node).get("nvidia.com/gpu.count", ""))
    shared = devices(node).get("nvidia.com/gpu.shared", 0)
    if shared:
        said.append(max(2, shared // count) if count else 2)
    return max(said)


def map_of(value: object) -> Mapping[str, Any]:
    """`value`, or an empty map for what is none: objects come from files, too."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> Sequence[Any]:
    """`value`, or an empty list for what is none."""
    return value if isinstance(value, list) else ()
