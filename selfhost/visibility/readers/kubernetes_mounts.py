"""Mounts of a container in a pod, joined with the volumes of the pod."""

import re
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.workload import Mount
from selfhost.visibility.readers.placed import Placed

_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<unit>[eE][+-]?\d+|[munkKMGTPE]i?|)\Z")
_POWERS: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_SMALL: Final = {"m": 1e-3, "u": 1e-6, "n": 1e-9}
_KINDS: Final = {
    "hostPath": ("hostPath", "path"),
    "emptyDir": ("emptyDir", ""),
    "persistentVolumeClaim": ("pvc", "claimName"),
    "ephemeral": ("pvc", ""),
    "configMap": ("configMap", "name"),
    "secret": ("secret", "secretName"),
    "projected": ("projected", ""),
    "downwardAPI": ("projected", ""),
    "image": ("image", "reference"),
    "nfs": ("volume", "path"),
    "csi": ("volume", "driver"),
}
"""By the key of the volume: its kind as a mount, and the field that names its source."""


def quantity_bytes(text: str) -> int | None:
    """`8Gi`, `20G`, `1e9`, as the API reads them; None for what is no quantity."""
    match = _QUANTITY.match(text.strip())
    if match is None:
        return None
    unit = match["unit"]
    if unit[1:].lstrip("+-").isdecimal():
        exponent = int(unit[1:])
        return int(float(match["number"]) * 10**exponent) if abs(exponent) <= 18 else None
    factor = _POWERS.get(unit) or _BINARY.get(unit) or _SMALL.get(unit)
    return None if factor is None else int(float(match["number"]) * factor)


def mounts(draft: Placed, container: Tree, spec: Tree) -> None:
    listed, mounted = spec.at("volumes"), container.at("volumeMounts")
    volumes = {volume.said("name"): volume for volume in listed.elements()} if listed is not None else {}
    for element in mounted.elements() if mounted is not None else ():
        if element.map is None:
            continue
        key = f"mounts.{len(draft.mounts)}"
        draft.mounts.append(_mount(element, volumes.get(element.said("name")), key))
        draft.mark_tree(key, element)


def _mount(element: Tree, volume: Tree | None, key: str) -> Mount:
    target, read_only = element.said("mountPath"), element.yes("readOnly")
    for name, (kind, named) in _KINDS.items():
        source = volume.at(name) if volume is not None else None
        if source is None:
            continue
        return Mount(
            target=target,
            source=source.said(named) if named else "",
            kind=kind,
            read_only=read_only,
            medium=source.said("medium"),
            size_bytes=quantity_bytes(source.said("sizeLimit")),
            key=key,
        )
    # a claim template of a StatefulSet, or a volume that another tool adds
    return Mount(target=target, source=element.said("name"), kind="pvc", read_only=read_only, key=key)
