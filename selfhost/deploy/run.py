"""What the steps of one `up` share and fill in, one after the other."""

import time
from dataclasses import dataclass

from selfhost.deploy.gather import Gathered
from selfhost.deploy.journal import Journal
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.fetch.venv import Environment
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.event import Event
from selfhost.shapes.event import State as EventState
from selfhost.shapes.plan import Plan
from selfhost.smoke.report import SmokeReport


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
    touched: bool = False
    """An engine was ended or started by this run; before that, nothing that served is changed."""
    ready: bool = False
    plumbing_s: float = 0.0
    model_s: float = 0.0

    def tell(self, step: str, state: EventState, text: str = "", *, since: float | None = None) -> None:
        """Emit one event; `since` is the monotonic second at which the step began."""
        elapsed = time.monotonic() - since if since is not None else 0.0
        self.work.sink.on(Event(step=step, state=state, text=text, elapsed_s=elapsed))

    def made(self, step: str, *, kind: str, path: str, existed: bool) -> None:
        """Note what this deployment brings onto the machine, before it comes: a kill must not make it look older."""
        self.journal.write(step, "made", data={"made": [{"kind": kind, "path": path, "existed": existed}]})
