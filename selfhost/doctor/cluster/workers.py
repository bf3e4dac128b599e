"""Sizes that count once for each worker of an engine. Pure."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from selfhost.doctor.cluster.pod import Container
from selfhost.doctor.cluster.tree import words
from selfhost.hosts.cluster_quantity import quantity

_TENSOR: Final = re.compile(r"(?:--tensor-parallel-size|--tp(?:-size)?|-tp)[= ](\d+)")
_GB: Final = 10**9
_BARE: Final = 10**6
"""LMCache counts in GB where no unit is written."""


def workers(one: Container) -> int:
    match = _TENSOR.search(" ".join((*words(one.spec, "command"), *words(one.spec, "args"))))
    return int(match[1]) if match else 1


def per_worker(one: Container, keys: Sequence[str]) -> tuple[str, Decimal]:
    """The first of the variables that is set, times the workers: in words, and in bytes."""
    for key in keys:
        said = one.env(key) or ""
        size = quantity(said)
        if size:
            count = workers(one)
            bare = size < _BARE
            whole = size * count * _GB if bare else size * count
            shown = f"{said} GB" if bare else said
            total = f"{size * count} GB" if bare else f"{whole / 1024**3:.0f}Gi"
            return f"{key} {shown} x TP {count} = {total}", whole
    return "", Decimal(0)
