"""SHA-256 of every file of a model. The hub names its large blobs by it; the others are read once and remembered."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.files import write_atomic
from selfhost.models.hub_files import wanted
from selfhost.shapes.event import Event, Sink
from selfhost.stack.entry import LockedFile

STEP: Final = "lock"
SCHEMA: Final = "selfhost.sums/1"
_BLOB: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK: Final = 8 * 2**20


def files_of(folder: Path, *, kept: Path, sink: Sink) -> tuple[LockedFile, ...]:
    """Every file of the model that is served, by its path in `folder`. `kept` remembers sums between runs.

    A large blob of the hub's cache is named by its sum (huggingface_hub, file_download.py: the etag of an LFS file),
    which was compared when it came. Raises EnvironmentMissing for a file that cannot be read.
    """
    sums = _Sums.read(kept)
    found = {path: size for path, size in _listing(folder).items() if not path.startswith(".")}
    names = sorted(wanted(found))
    total, done = sum(found[name] for name in names), 0
    files = []
    for name in names:
        sink.on(Event(step=STEP, state="working", text=name, done=done, total=total))
        try:
            files.append(LockedFile(path=name, size=found[name], sha256=sums.of(folder / name)))
        except OSError as error:
            raise EnvironmentMissing(
                f"{folder / name} cannot be read: {error.strerror}",
                why="Its sum belongs into the lock.",
                fix=(f"see whom it belongs to:\nls -l {folder / name}",),
                id="CF027",
            ) from None
        done += found[name]
    sums.write(kept)
    return tuple(files)


def _listing(folder: Path) -> dict[str, int]:
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(place) / name
            if path.is_file():
                found[str(path.relative_to(folder))] = path.stat().st_size
    return found


@dataclass(slots=True)
class _Sums:
    """By path, size and time: a file that was touched is read again."""

    known: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, kept: Path) -> "_Sums":
        """What cannot be used counts as not there."""
        try:
            raw = json.loads(kept.read_bytes())
            known = raw["sums"] if raw["schema"] == SCHEMA else {}
            return cls({str(key): str(value) for key, value in known.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def of(self, path: Path) -> str:
        real = path.resolve()
        if real.parent.name == "blobs" and _BLOB.fullmatch(real.name):
            return real.name
        seen = real.stat()
        key = f"{real}\0{seen.st_size}\0{seen.st_mtime_ns}"
        self.used[key] = found = self.known.get(key) or _sum(real)
        return found

    def write(self, kept: Path) -> None:
        """Those of other models stay, as long as their files do."""
        others = {key: value for key, value in self.known.items() if Path(key.partition("\0")[0]).exists()}
        sums = {**others, **self.used}
        if sums != self.known:
            write_atomic(
                kept, json.dumps({"schema": SCHEMA, "sums": sums}, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
            )


def _sum(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()
