"""One way of devices into a container, with its reason and how it is known."""

from dataclasses import dataclass, field

from selfhost.shapes.plan import Evidence, Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """`value` is the way in words; `reasons` say why single lines are there, by keys of ContainerPlan.reasons."""

    injection: Injection
    value: str
    reason: str
    source: str
    evidence: Evidence = Evidence.SEEN_HERE
    note: str = ""
    reasons: dict[str, str] = field(default_factory=dict)


def keyed(injection: Injection, reason: str) -> dict[str, str]:
    """The same reason at the line by which the devices come in."""
    found = {
        "cdi": bool(injection.cdi),
        "requests": bool(injection.requests),
        "runtime": bool(injection.runtime),
        "devices": bool(injection.devices) and not injection.requests and not injection.runtime,
    }
    return {key: reason for key, here in found.items() if here}
