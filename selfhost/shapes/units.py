"""How a person reads bytes, tokens and durations."""

KIB = 1024
MIB = 1024**2
GIB = 1024**3


def format_bytes(count: float) -> str:
    """Bytes in the binary unit that reads best: `93.1 MiB`, `7.5 GiB`."""
    if count < KIB:
        return f"{count:.0f} B"
    for unit, size in (("KiB", KIB), ("MiB", MIB), ("GiB", GIB)):
        if count < size * KIB:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1024**4:.1f} TiB"


def format_tokens(count: int) -> str:
    """Tokens with thousands separators: `114,000`."""
    return f"{count:,}"


def format_duration(seconds: float) -> str:
    """A duration as `12ms`, `3.4s`, `2m 05s` or `1h 04m`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
