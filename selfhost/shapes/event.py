"""Progress as data: one event, shown by whichever renderer fits the terminal."""

from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["working", "done", "unchanged", "warning", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change in one step. `done` and `total` are bytes or counts (`unit` says which); progress never goes back."""

    step: str
    state: State
    text: str = ""
    done: int | None = None
    total: int | None = None
    unit: Literal["bytes", "count"] = "bytes"
    elapsed_s: float = 0.0


class Sink(Protocol):
    """Where events go."""

    def on(self, event: Event) -> None: ...

    def close(self) -> None: ...
