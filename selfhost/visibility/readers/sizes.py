"""Amounts of memory as docker/go-units reads them."""

import re
from typing import Final

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[bkmgtp]?)(?:i?b)?\Z", re.IGNORECASE)
_POWERS: Final = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def size_bytes(text: str) -> int | None:
    """`8g`, `64m`, `1073741824`, as docker/go-units reads them (units are powers of 1024); None for what is no size."""
    match = _SIZE.match(text.strip())
    if match is None:
        return None
    return int(float(match["number"]) * 1024 ** _POWERS[match["unit"].lower()])
