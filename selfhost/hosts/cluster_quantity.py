"""Quantities as the Kubernetes API writes them: `500m`, `16Gi`, `1e3`, `0.5`. Pure."""

import re
from decimal import Decimal

_FORM = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}  # fmt: skip


def quantity(text: object) -> Decimal | None:
    """None for what is no quantity (apimachinery, api/resource/quantity.go)."""
    found = _FORM.fullmatch(str(text).strip()) if text is not None else None
    if found is None:
        return None
    number = Decimal(found[1] + (found[2] or ""))
    return number * _SUFFIXES[found[3]] if found[3] else number


def whole(text: object) -> int:
    """Rounded down; 0 for what is no quantity."""
    number = quantity(text)
    return int(number) if number is not None else 0
