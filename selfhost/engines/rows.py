"""Rows of a table as the fields of a frozen shape."""

from collections.abc import Mapping
from typing import Any


def frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same with tuples for lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
