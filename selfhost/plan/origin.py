"""Who decided: selfhost, or the flag or file line of the user."""

from selfhost.shapes.service import Service

SELFHOST = "selfhost"


def by(service: Service, field: str, value: object) -> str:
    """`selfhost` when nothing was asked, else where it came from and what it said: `--context 8192`."""
    if value is None:
        return SELFHOST
    where = service.origins.get(field, "")
    if where.startswith("--") and " " not in where:
        return f"{where} {value}"
    return where or f"--{field.replace('_', '-')} {value}"
