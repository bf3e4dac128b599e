"""Reading a growing file."""

import codecs
from dataclasses import dataclass, field
from pathlib import Path


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


@dataclass(slots=True)
class Tail:
    """Reads what was added to a log since the last look; starts over when the file was truncated or replaced.

    A character that is cut by the end of the file is kept for the next look.
    """

    path: Path
    _offset: int = 0
    _inode: int = 0
    _decoder: codecs.IncrementalDecoder = field(default_factory=_decoder)

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
