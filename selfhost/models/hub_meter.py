"""How far a download is: bytes of the whole snapshot, told to a Sink."""

import time
from typing import Any, Self

from selfhost.shapes.event import Event, Sink

_EVENT_EVERY_S = 0.2


class Meter:
    """Bytes of a whole snapshot as they arrive; never goes back, speaks at most five times a second."""

    def __init__(self, sink: Sink, *, step: str, text: str, total: int) -> None:
        self._sink, self._step, self._text, self.total = sink, step, text, total
        self._before = self._here = self._best = 0
        self._spoke = 0.0

    def start_file(self) -> None:
        self._before += self._here
        self._here = 0

    def file_is_at(self, count: int) -> None:
        self._here = count
        self._best = max(self._best, min(self._before + count, self.total))
        now = time.monotonic()
        if now - self._spoke >= _EVENT_EVERY_S:
            self._spoke = now
            self._sink.on(Event(step=self._step, state="working", text=self._text, done=self._best, total=self.total))

    def add(self, count: int) -> None:
        self.file_is_at(self._here + count)


def bar_of(meter: Meter | None) -> Any:
    """A class that the library takes for a progress bar; it shows nothing and feeds the meter."""

    class Bar:
        def __init__(self, *_: object, total: int | None = None, initial: int = 0, **__: object) -> None:
            self.n, self.total = initial, total

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def update(self, count: float | None = 1) -> None:
            if meter is not None and count:
                meter.add(int(count))

        def quiet(self, *_: object, **__: object) -> None:
            return None

        update_transfer = set_postfix_str = set_transfer_postfix_str = quiet
        set_description = set_description_str = refresh = close = quiet

    return Bar
