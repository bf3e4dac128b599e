"""What is known of one step of work, and how its figures read."""

from dataclasses import dataclass

from selfhost.core.terminal import clean
from selfhost.shapes.event import Event, State
from selfhost.shapes.units import GIB, KIB, MIB, format_bytes, format_duration


def amount(done: int | None, total: int | None, unit: str) -> str:
    """`30 % (2.9 of 9.8 GiB)`, `25 % (3 of 12)`, `2.9 GiB`, or nothing."""
    if done is None:
        return ""
    if not total:
        return format_bytes(done) if unit == "bytes" else f"{done:,}"
    percent = f"{done * 100 // total} %"
    if unit != "bytes":
        return f"{percent} ({done:,} of {total:,})"
    whole = format_bytes(total)
    sizes = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1024**4}
    size = sizes[whole.rpartition(" ")[2]]
    return f"{percent} ({done / size:.{0 if size == 1 else 1}f} of {whole})"


@dataclass(slots=True, kw_only=True)
class StepView:
    """What is known of one step. `done` never goes back while `text` and `total` stay."""

    name: str
    since: float
    state: State = "working"
    text: str = ""
    done: int | None = None
    total: int | None = None
    unit: str = "bytes"

    def take(self, event: Event, *, now: float) -> None:
        same = (event.text, event.total, event.state) == (self.text, self.total, self.state)
        done = event.done
        if done is not None and event.total is not None:
            done = min(done, event.total)
        if same and self.done is not None:
            done = max(self.done, done or 0)
        self.state, self.text, self.done, self.total, self.unit = event.state, event.text, done, event.total, event.unit
        self.since = min(self.since, now - event.elapsed_s)

    @property
    def words(self) -> str:
        return " ".join(part for part in (clean(self.text), amount(self.done, self.total, self.unit)) if part)


def whole_seconds(elapsed_s: float) -> str:
    """A running time, which has no use for tenths: `20s`, `1m 05s`."""
    return f"{int(elapsed_s)}s" if elapsed_s < 60 else format_duration(int(elapsed_s))
