"""What the steps of one `up` share and fill in, one after the other."""

import time
from dataclasses import dataclass

from selfhost.deploy.gather import Gathered
from selfhost.deploy.journal import Journal
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.engines.base import engine
from selfhost.fetch.venv import Environment
from selfhost.runtimes.base import LocalImage, Runtime
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.event import Event
from selfhost.shapes.event import State as EventState
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.shapes.workload import Workload
from selfhost.smoke.report import SmokeReport
from selfhost.stack.entry import Entry


@dataclass(slots=True, kw_only=True)
class Run:
    """State of one `up`. Steps read what earlier ones filled in."""

    work: Workplace
    state: State
    journal: Journal
    gathered: Gathered
    plan: Plan
    digest: str
    runtime: Runtime
    environment: Environment | None = None
    image: LocalImage | None = None
    """The image as it lies here; None for a process."""
    bundle: Bundle | None = None
    workload: Workload | None = None
    """As read back from the written files, the user's overrides included."""
    report: SmokeReport | None = None
    touched: bool = False
    """An engine was ended or started by this run; before that, nothing that served is changed."""
    ready: bool = False
    locked: Entry | None = None
    """What a lock holds this deployment to."""
    overwrite: bool = False
    """Files that a person edited are written anew; the edited copies are kept."""
    plumbing_s: float = 0.0
    model_s: float = 0.0

    def tell(self, step: str, state: EventState, text: str = "", *, since: float | None = None) -> None:
        """Emit one event; `since` is the monotonic second at which the step began."""
        elapsed = time.monotonic() - since if since is not None else 0.0
        self.work.sink.on(Event(step=step, state=state, text=text, elapsed_s=elapsed))

    def made(self, step: str, *, kind: str, path: str, existed: bool | None) -> None:
        """Note what this deployment brings onto the machine, before it comes: a kill must not make it look older."""
        self.journal.write(step, "made", data={"made": [{"kind": kind, "path": path, "existed": existed}]})

    def place(self, *, checked: bool) -> Place:
        """Where this deployment's files lie, for the renderers."""
        takes_key = bool(engine(self.plan.build.engine).KEY_VARIABLE)
        return Place(
            folder=str(self.state.bundle),
            key_file=str(self.state.key_file),
            env_file=str(self.state.env_file) if takes_key and self.plan.container is not None else "",
            python=self.environment.python if self.environment is not None else "",
            image_digest=self.image.digest if self.image is not None else "",
            checked=checked,
        )
