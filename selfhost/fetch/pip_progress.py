"""What pip is at, read from its output and from the folder it fills."""

import os
import re
import time
from pathlib import Path

from selfhost.shapes.event import Event, Sink
from selfhost.shapes.units import MIB, format_bytes

_DOWNLOADING = re.compile(r"^\s*Downloading (?:\S*/)?([A-Za-z0-9_.+]+?)-\d\S*\s+\(([^)]*)\)")
_COLLECTING = re.compile(r"^\s*(?:Collecting|Processing) (?:\S*/)?([A-Za-z0-9][A-Za-z0-9._-]*?)(?=$|[\s=<>~!\[;(]|-\d)")
_INSTALLING = re.compile(r"^Installing collected packages: (.+)")
_RAW = re.compile(r"^Progress (\d+) of (\d+)")
MEASURE_S = 2.0
SHARE = 10
"""Measuring a folder of 60,000 files takes a while on a slow disk: at most a tenth of the time is spent on it."""


class PipProgress:
    """Turns pip's lines and the folder's growth into events. `total_bytes` is what the environment will take.

    Downloads are collected in `scratch` before the first of them is installed. They are progress too, up to half of
    the whole; what is then unpacked fills the rest.
    """

    def __init__(self, folder: Path, *, scratch: Path, sink: Sink, step: str, title: str, total_bytes: int) -> None:
        self._folder = folder
        self._scratch = scratch
        self._sink = sink
        self._step = step
        self._title = title
        self._total = total_bytes
        self._began = time.monotonic()
        self._next = self._began
        self._doing = "starting pip"
        self._order: list[str] = []
        self._bytes = self._downloaded = self._arrived = self._best = 0

    def line(self, text: str) -> None:
        """One line of pip's output."""
        doing = self._words(text)
        if doing and doing != self._doing:
            self._doing = doing
            self._tell()

    def tick(self) -> None:
        """From time to time, output or not."""
        now = time.monotonic()
        if now < self._next:
            return
        self._bytes = max(self._bytes, size_of(self._folder))
        self._downloaded = 0 if self._order else max(self._downloaded, size_of(self._scratch))
        self._arrived = max(self._arrived, min(self._downloaded, self._total // 2))
        if self._order:
            self._doing = self._installing()
        spent = time.monotonic() - now
        self._next = now + max(MEASURE_S, SHARE * spent)
        self._tell()

    def now(self, doing: str) -> None:
        """A stage that is not pip's."""
        self._order = []
        self._downloaded = 0
        self._doing = doing
        self._tell()

    def _words(self, text: str) -> str:
        if found := _INSTALLING.match(text):
            self._order = [name.strip() for name in found[1].split(",")]
            self._downloaded = 0
            return self._installing()
        if found := _DOWNLOADING.match(text):
            return f"downloading {found[1].replace('_', '-')} ({found[2]})"
        if found := _RAW.match(text):
            name = self._doing.partition(" (")[0]
            return f"{name} ({format_bytes(int(found[1]))} of {format_bytes(int(found[2]))})"
        if found := _COLLECTING.match(text):
            return f"resolving {found[1]}"
        return ""

    def _installing(self) -> str:
        """Packages are installed in the order that was printed; each one that is done has a .dist-info folder."""
        places = self._folder.glob("lib/python*/site-packages/*.dist-info/RECORD")
        done = {_normal(place.parent.name.partition("-")[0]) for place in places}  # NAME-VERSION.dist-info
        left = [name for name in self._order if _normal(name) not in done]
        count = len(self._order)
        return f"installing {left[0]} ({count - len(left) + 1} of {count})" if left else "installing the last package"

    def _done(self) -> int:
        """Never goes back, and reaches the total when everything is unpacked, however much was downloaded."""
        unpacked = min(self._bytes, self._total)
        mixed = self._arrived + unpacked * (self._total - self._arrived) // max(1, self._total)
        self._best = max(self._best, mixed)
        return self._best

    def _tell(self) -> None:
        got = f", {format_bytes(self._downloaded)} fetched" if self._downloaded >= MIB else ""
        self._sink.on(
            Event(
                step=self._step,
                state="working",
                text=f"{self._title}: {self._doing}{got}",
                done=self._done(),
                total=self._total,
                elapsed_s=time.monotonic() - self._began,
            )
        )


def size_of(folder: Path) -> int:
    """Bytes of all files below `folder`, links counted as links; what goes away meanwhile counts nothing."""
    total = 0
    left = [str(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def _normal(name: str) -> str:
    """One spelling of a distribution's name: packaging.python.org/specifications/name-normalization."""
    return re.sub(r"[-_.]+", "-", name).lower()
