"""A status as text."""

from selfhost.deploy.status import Status
from selfhost.shapes.units import format_bytes, format_duration, format_tokens


def lines(found: Status) -> list[str]:
    """One deployment, a fact a line; what could not be seen is left out."""
    rows = [f"{found.name}  {found.state}"]
    facts = [
        ("address", found.url),
        ("model", " · ".join(part for part in (found.model, found.engine, found.device) if part)),
        ("health", found.health),
        ("runs in", _where(found)),
        ("forward", found.forward if found.state == "ready" else ""),
        ("checked", found.checked),
        ("memory", format_bytes(found.memory_bytes) if found.memory_bytes is not None else ""),
        ("uptime", format_duration(found.uptime_s) if found.uptime_s is not None else ""),
        ("tokens", _tokens(found)),
        ("process", str(found.pid) if found.pid else ""),
    ]
    rows.extend(f"  {label:<8} {value}" for label, value in facts if value)
    return rows


def _where(found: Status) -> str:
    """Of a container: whose it is, what its own check says, whether it was started again."""
    if found.cluster:
        pod = f"pod {found.container}, " if found.container else ""
        return f"{pod}{found.cluster}{f', {found.restarted}' if found.restarted else ''}"
    if not found.container:
        return ""
    own = f"its own check: {found.container_health}" if found.container_health else ""
    parts = (f"{found.runtime} container {found.container}", own, found.restarted)
    return ", ".join(part for part in parts if part)


def _tokens(found: Status) -> str:
    if found.prompt_tokens is None or found.generated_tokens is None:
        return ""
    return f"{format_tokens(found.prompt_tokens)} read, {format_tokens(found.generated_tokens)} generated"
