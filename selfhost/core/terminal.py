"""What an output stream can show: colour, symbols, width. Deciding is pure; writing survives a stream that cannot."""

import os
import re
from collections.abc import Mapping
from typing import Final, TextIO

WIDTH_UNKNOWN: Final = 80
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ASCII: Final = str.maketrans(
    {
        "✓": "ok",
        "✗": "FAIL",
        "\N{EN DASH}": "-",
        "→": "->",
        "·": "-",
        "…": "...",
        "≤": "<=",
        "≥": ">=",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{EM DASH}": "-",
    }
)
_CODES: Final = {"done": "32", "error": "31", "warning": "33", "literal": "36", "dim": "2"}
_SYMBOLS: Final = {
    "done": "✓",
    "failed": "✗",
    "unchanged": "\N{EN DASH}",
    "skipped": "\N{EN DASH}",
    "warning": "!",
    "working": "·",
}
_WORDS: Final = {"done": "ok", "failed": "FAIL", "unchanged": "skip", "skipped": "skip", "warning": "warn"}
_ROLES: Final = {"done": "done", "failed": "error", "unchanged": "dim", "skipped": "dim", "warning": "warning"}


def wants_colour(asked: str, *, is_tty: bool, env: Mapping[str, str]) -> bool:
    """`asked` is auto, always or never. A variable counts when it is set and not empty (no-color.org)."""
    if asked in ("always", "never"):
        return asked == "always"
    if env.get("FORCE_COLOR"):
        return True
    return is_tty and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def wants_live(*, is_tty: bool, env: Mapping[str, str]) -> bool:
    """Whether `--progress auto` may redraw a line."""
    return is_tty and env.get("TERM", "") not in ("", "dumb") and not env.get("CI")


def may_ask(*, stdin_is_tty: bool, stderr_is_tty: bool, json: bool) -> bool:
    """Whether a question can be put to a person."""
    return stdin_is_tty and stderr_is_tty and not json


def is_tty(stream: TextIO) -> bool:
    """False also for a stream that is closed."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def is_utf8(stream: TextIO) -> bool:
    """A stream without an encoding (StringIO) takes any text."""
    encoding = stream.encoding or "utf-8"
    return encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")


def width_of(stream: TextIO) -> int:
    """Columns of the terminal behind `stream`, 80 when there is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_UNKNOWN
    except (OSError, ValueError):
        return WIDTH_UNKNOWN


def cells(text: str) -> int:
    """Columns that `text` takes on a terminal; colour codes take none, East Asian wide characters two."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    import unicodedata  # at use: a library of its own

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in _ANSI.sub("", text)
    )


def clean(text: str) -> str:
    """Foreign text without its colours, and with other control characters made visible: a log must not steer us."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", _ANSI.sub("", text.replace("\r\n", "\n")))


class Terminal:
    """One output stream. `width` in columns."""

    def __init__(
        self, stream: TextIO, env: Mapping[str, str], *, color: str = "auto", width: int | None = None
    ) -> None:
        self.stream = stream
        self.is_tty = is_tty(stream)
        self.utf8 = is_utf8(stream)
        self.colour = wants_colour(color, is_tty=self.is_tty, env=env)
        self.width = width_of(stream) if width is None else width

    def paint(self, role: str, text: str) -> str:
        """`text` in the colour of `role` (done, error, warning, literal, dim); unchanged without colour."""
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self.colour else text

    def symbol(self, state: str) -> str:
        """The painted mark of done, failed, unchanged, skipped, warning; a word where the stream is not UTF-8."""
        mark = _SYMBOLS[state] if self.utf8 else _WORDS.get(state, "-").ljust(4)
        return self.paint(_ROLES[state], mark) if state in _ROLES else mark

    def fit(self, text: str) -> str:
        """`text` in what this stream can encode; nothing is dropped."""
        encoding = self.stream.encoding or "utf-8"
        plain = text if self.utf8 else text.translate(_ASCII)
        return plain.encode(encoding, "backslashreplace").decode(encoding)

    def write(self, text: str) -> None:
        """Write and flush. Raises BrokenPipeError when the reader has left."""
        self.stream.write(self.fit(text))
        self.stream.flush()
