"""What runs, and how smoke may look at it."""

from dataclasses import dataclass
from typing import Protocol

from selfhost.shapes.plan import ReasoningPlan


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a key is kept; never the key itself."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible endpoint. `context` in tokens."""

    name: str
    base_url: str
    """`http://127.0.0.1:8000/v1`."""
    model: str
    """The name under `/v1/models`."""
    engine: str = ""
    engine_version: str = ""
    runtime: str = ""
    device: str = ""
    context: int | None = None
    key: SecretRef | None = None
    reasoning: ReasoningPlan | None = None
    model_dir: str = ""
    """Where the served weights lie on this machine; probes of the model are looked for there."""
    model_ref: str = ""
    """What `selfhost up` was given to get this model; empty at a foreign address."""
    chat: bool = True
    """False for a model without a chat template: only plain completion exists."""


class Inspector(Protocol):
    """What deploy lets smoke see of a running engine; absent for a foreign URL."""

    def alive(self) -> bool: ...
