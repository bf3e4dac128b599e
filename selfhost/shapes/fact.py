"""A fact and how it is known, or why it is not."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A value and the file, command or call it was read from."""

    value: T
    how: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a value could not be read."""

    reason: str


Fact = Known[T] | Unknown


class Vendor(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"
    OTHER = "other"
