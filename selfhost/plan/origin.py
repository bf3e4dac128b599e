"""Who decided: selfhost, or the flag or file line of the user."""

from selfhost.shapes.service import Service

SELFHOST = "selfhost"


def by(service: Service, field: str, value: object) -> str:
    """`selfhost` when nothing was asked, else where it came from and what it said: `--context 8192`."""
    if value is None:
        return SELFHOST
    flag = f"--{field.replace('_', '-')}"
    return service.origins.get(field) or (flag if value is True else f"{flag} {value}")
