"""Versions as numbers that compare."""

import re


def numbers(version: str) -> tuple[int, ...]:
    """`28.3.0-rc.1` gives 28, 3, 0; empty for what begins with no number."""
    found = re.match(r"v?([0-9]+(?:\.[0-9]+)*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()
