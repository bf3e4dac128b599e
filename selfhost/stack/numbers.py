"""Numbers as people write them in selfhost.yaml: `8192`, and `32k` as the engines read their own flags."""

import re
from decimal import Decimal
from typing import Final

_SHORT = re.compile(r"(?P<digits>\d{1,18}(?:\.\d{1,18})?)(?P<unit>[kKmM]?)")
_UNITS: Final = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}


def short(text: str) -> int | None:
    """`32k` is 32,000, `32K` is 32,768, `1.5m` is 1,500,000; None for what is no whole number of that kind."""
    found = _SHORT.fullmatch(text.strip())
    if found is None or not text.isascii() or ("." in text and not found["unit"]):
        return None
    return int(Decimal(found["digits"]) * _UNITS[found["unit"]])
