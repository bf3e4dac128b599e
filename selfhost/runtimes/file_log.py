"""A log that is a growing file."""

import codecs
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


@dataclass(slots=True)
class FileLog:
    """Reads what was added since the last look; starts over when the file was truncated or replaced.

    A character that is cut by the end of the file is kept for the next look. Satisfies runtimes.base.Log.
    """

    path: Path
    _offset: int = 0
    _inode: int = 0
    _decoder: codecs.IncrementalDecoder = field(default_factory=_decoder)

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def more(self) -> str:
        try:
            with self.path.open("rb") as stream:
                stat = self.path.stat()
                if stat.st_ino != self._inode or stat.st_size < self._offset:
                    self._offset, self._inode, self._decoder = 0, stat.st_ino, _decoder()
                stream.seek(self._offset)
                added = stream.read()
        except FileNotFoundError:
            return ""
        self._offset += len(added)
        return self._decoder.decode(added)

    def last(self, lines: int | None) -> str:
        try:
            with self.path.open(encoding="utf-8", errors="replace") as stream:
                return "".join(stream if lines is None else deque(stream, maxlen=lines))
        except FileNotFoundError:
            return ""
