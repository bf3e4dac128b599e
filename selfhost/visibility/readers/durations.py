"""Lengths of time as Go reads and writes them: `1m30s`, `15s`, `500ms`; a plain number where the key takes seconds."""

import re

_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PLAIN = re.compile(r"\d+(?:\.\d+)?\Z")


def seconds(text: str) -> float | None:
    """None for what is no length of time."""
    said = text.strip()
    if _PLAIN.match(said):
        return float(said)
    parts = _PART.findall(said)
    if not parts or "".join(number + unit for number, unit in parts) != said:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
