"""What the steps of one `up` share and fill in, one after the other."""

import time
from dataclasses import dataclass, field

from selfhost.deploy.gather import Gathered
from selfhost.deploy.journal import Journal
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.fetch.venv import Environment
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.event import Event
from selfhost.shapes.event import State as EventState
from selfhost.shapes.plan import Plan
from selfhost.smoke.runner import SmokeReport


@dataclass(slots=True, kw_only=True)
class Run:
    """State of one `up`. Steps read what earlier ones filled in."""

    work: Workplace
    state: State
    journal: Journal
    gathered: Gathered
    plan: Plan
    digest: str
    environment: Environment | None = None
    bundle: Bundle | None = None
    report: SmokeReport | None = None
    started_engine: bool = False
    ready: bool = False
    checked_before: str = ""
    plumbing_s: float = 0.0
    model_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    def tell(
        self, step: str, state: EventState, text: str = "", *, since: float | None = None, progress: str = ""
    ) -> None:
        """Emit one event; `since` is the monotonic second at which the step began."""
        elapsed = time.monotonic() - since if since is not None else 0.0
        self.work.sink.on(Event(step=step, state=state, text=progress or text, elapsed_s=elapsed))
