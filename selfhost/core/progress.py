"""Events on a terminal, in a log, as JSON lines, or not at all."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO

from selfhost.core.errors import InputError
from selfhost.core.step import StepView, whole_seconds
from selfhost.core.terminal import Terminal, cells, is_tty, wants_live
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.units import format_duration

HEARTBEAT_S: Final = 30.0
TEXT_PAUSE_S: Final = 5.0
KINDS: Final = ("auto", "tty", "plain", "json", "quiet")
_STEP_COLUMNS: Final = 10
_LINE_COLUMNS: Final = 88
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINNER_ASCII: Final = "|/-\\"
_FRAME_S: Final = 0.125
_ERASE: Final = "\r\x1b[2K"

Clock = Callable[[], float]


def choose(asked: str, out: TextIO, env: Mapping[str, str]) -> Sink:
    """Pick the renderer; `asked` is auto, tty, plain, json or quiet."""
    if asked == "auto":
        asked = "tty" if wants_live(is_tty=is_tty(out), env=env) else "plain"
    renderers: dict[str, Callable[[], Sink]] = {
        "tty": lambda: Tty(Terminal(out, env)),
        "plain": lambda: Plain(Terminal(out, env)),
        "json": lambda: Json(Terminal(out, env)),
        "quiet": Quiet,
    }
    if asked not in renderers:
        raise InputError(
            f"there is no progress `{asked}`",
            why=f"Known are {', '.join(KINDS)}.",
            fix=("name one of these, or leave it out: --progress auto",),
            id="CF092",
        )
    return renderers[asked]()


class _Renderer:
    """Steps behind one lock, on a stream that may close under us: then nothing is shown, and work goes on."""

    def __init__(self, terminal: Terminal, *, clock: Clock = time.monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._lock = threading.RLock()
        self._steps: dict[str, StepView] = {}
        self._gone = False

    def on(self, event: Event) -> None:
        with self._lock:
            now = self._clock()
            step = self._steps.get(event.step)
            if step is None or (step.state != "working" and event.state == "working"):
                step = self._steps[event.step] = StepView(name=event.step, since=now)
            step.take(event, now=now)
            self._show(step, event)

    def close(self) -> None:
        return None

    def _show(self, step: StepView, event: Event) -> None:
        raise NotImplementedError

    def _elapsed(self, step: StepView) -> float:
        return self._clock() - step.since

    def _write(self, line: str) -> None:
        self._put(line + "\n")

    def _put(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._terminal.write(text)
        except (OSError, ValueError):  # the reader left, or the stream was closed
            self._gone = True


class _Ticking(_Renderer):
    """A renderer that also speaks between events: `tick` runs every `period_s` once a step works, until `close`."""

    period_s = HEARTBEAT_S

    def __init__(self, terminal: Terminal, *, clock: Clock = time.monotonic) -> None:
        super().__init__(terminal, clock=clock)
        self._closed = threading.Event()
        self._ticker: threading.Thread | None = None

    def close(self) -> None:
        self._closed.set()
        if self._ticker is not None:
            self._ticker.join(timeout=1.0)

    def tick(self) -> None:
        raise NotImplementedError

    def _keep_ticking(self) -> None:
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._run, name="progress", daemon=True)
            self._ticker.start()

    def _run(self) -> None:
        while not self._closed.wait(self.period_s):
            self.tick()


class Plain(_Ticking):
    """One line when something changed: the state, the text, a tenth of the way, or half a minute.

    Texts that change faster than TEXT_PAUSE_S are passed over, so that a log stays short: an install alone names some
    three hundred packages.
    """

    def __init__(self, terminal: Terminal, *, clock: Clock = time.monotonic) -> None:
        super().__init__(terminal, clock=clock)
        self._keys: dict[str, tuple[object, ...]] = {}
        self._said_at: dict[str, float] = {}

    def tick(self) -> None:
        with self._lock:
            for step in self._steps.values():
                if step.state == "working":
                    self._line(step)

    def _show(self, step: StepView, event: Event) -> None:
        if event.state == "working":
            self._keep_ticking()
        self._line(step)

    def _line(self, step: StepView) -> None:
        tenth = step.done * 10 // step.total if step.done is not None and step.total else None
        half_minute = int(self._elapsed(step) // HEARTBEAT_S) if step.state == "working" else 0
        key = (step.state, step.text, tenth, half_minute)
        before = self._keys.get(step.name)
        if key == before or self._too_soon(step, key, before):
            return
        self._keys[step.name] = key
        self._said_at[step.name] = self._clock()
        beat = before is not None and key[:3] == before[:3]
        self._write(f"{step.name}: {self._sentence(step, beat=beat)}")

    def _too_soon(self, step: StepView, key: tuple[object, ...], before: tuple[object, ...] | None) -> bool:
        """A new text alone, soon after the last one; the next event or heartbeat says what then holds."""
        if step.state != "working" or before is None or before[0] != "working" or not before[1]:
            return False
        only_text = (before[0], before[2], before[3]) == (key[0], key[2], key[3])
        return only_text and self._clock() - self._said_at.get(step.name, 0.0) < TEXT_PAUSE_S

    def _sentence(self, step: StepView, *, beat: bool) -> str:
        words = " ".join(step.words.split("\n"))
        took = format_duration(self._elapsed(step))
        match step.state:
            case "working":
                return (
                    f"{words or 'working'} ({whole_seconds(self._elapsed(step))} so far)"
                    if beat
                    else words or "started"
                )
            case "unchanged":
                return words or "unchanged"
            case "warning":
                return f"warning: {words}"
            case "failed":
                return ": ".join(part for part in (f"failed after {took}", words) if part)
            case "done":
                return ": ".join(part for part in (f"done in {took}", words) if part)


class Json(_Renderer):
    """One selfhost.event/1 object a line; within a second, a step that only moved inside one percent says nothing."""

    def __init__(self, terminal: Terminal, *, clock: Clock = time.monotonic) -> None:
        super().__init__(terminal, clock=clock)
        self._keys: dict[str, tuple[object, ...]] = {}

    def _show(self, step: StepView, event: Event) -> None:
        elapsed_s = self._elapsed(step)
        percent = step.done * 100 // step.total if step.done is not None and step.total else None
        key = (step.state, step.text, step.total, percent, int(elapsed_s))
        if self._keys.get(step.name) == key:
            return
        self._keys[step.name] = key
        fields = {
            "schema": "selfhost.event/1",
            "step": step.name,
            "state": step.state,
            "text": step.text,
            "done": step.done,
            "total": step.total,
            "unit": event.unit,
            "elapsed_s": round(elapsed_s, 3),
        }
        self._write(json.dumps(fields, ensure_ascii=not self._terminal.utf8))


class Tty(_Ticking):
    """Finished steps stay as lines; the one at work is redrawn below them.

    The cursor is never hidden: a killed command must not leave the user's shell without one.
    """

    period_s = _FRAME_S

    def __init__(self, terminal: Terminal, *, clock: Clock = time.monotonic) -> None:
        super().__init__(terminal, clock=clock)
        self._drawn = False

    def close(self) -> None:
        super().close()
        with self._lock:
            self._erase()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the live line away while something else is written there; the next tick brings it back."""
        with self._lock:
            self._erase()
            yield

    def tick(self) -> None:
        with self._lock:
            line = "" if self._closed.is_set() else self.working()
            if line:
                self._put(_ERASE + line)
                self._drawn = True

    def _show(self, step: StepView, event: Event) -> None:
        if event.state == "working":
            self._keep_ticking()
        else:
            self._erase()
            self._write(self.finished(step))
        self.tick()

    def _erase(self) -> None:
        if self._drawn:
            self._put(_ERASE)
            self._drawn = False

    def finished(self, step: StepView) -> str:
        """`  ✓ detect    RTX 4090 · driver 580.95.05                          0.3s`."""
        words = step.words or ("unchanged" if step.state == "unchanged" else "")
        took = "" if step.state == "unchanged" else format_duration(self._elapsed(step))
        head = f"{step.name:<{_STEP_COLUMNS}}"
        if step.state == "unchanged":
            head, words = self._terminal.paint("dim", head), self._terminal.paint("dim", words)
        return self._align(f"  {self._terminal.symbol(step.state)} {head}{words}", took)

    def working(self) -> str:
        """The live line, cut to the width: `  ⠹ wait      compile                                 20s`."""
        with self._lock:
            step = next((step for step in reversed(self._steps.values()) if step.state == "working"), None)
            if step is None:
                return ""
            frames = _SPINNER if self._terminal.utf8 else _SPINNER_ASCII
            frame = frames[int(self._clock() / _FRAME_S) % len(frames)]
            took = whole_seconds(self._elapsed(step))
            words = " ".join(step.words.split("\n"))
            room = self._columns - (4 + _STEP_COLUMNS + 2 + len(took))
            if cells(words) > room:
                while words and cells(words) >= room:
                    words = words[:-1]
                words = words.rstrip(" ·") + "…"
            return self._terminal.fit(self._align(f"  {frame} {step.name:<{_STEP_COLUMNS}}{words}", took))

    @property
    def _columns(self) -> int:
        return min(self._terminal.width - 1, _LINE_COLUMNS)

    def _align(self, left: str, right: str) -> str:
        gap = max(2, self._columns - cells(left) - len(right))
        return (left + " " * gap + right).rstrip()


class Quiet:
    """Nothing; errors are the console's."""

    def on(self, event: Event) -> None:
        del event

    def close(self) -> None:
        return None
