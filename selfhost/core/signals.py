"""SIGTERM and SIGHUP as an exception, so that every `finally` on the way out runs."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """The process was asked to end. Not an Exception: nobody answers it but cli.run."""


@contextmanager
def raised() -> Iterator[None]:
    """Within the block the first SIGTERM or SIGHUP raises Terminated; later ones are ignored: cleaning has begun.

    A signal that was ignored when we started stays ignored (`nohup selfhost up &`).
    """
    watched = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in watched}

    def answer(_number: int, _frame: FrameType | None) -> None:
        for number in watched:
            signal.signal(number, signal.SIG_IGN)
        raise Terminated

    for number in watched:
        signal.signal(number, answer)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
