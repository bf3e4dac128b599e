"""Text made safe for the language it is written into. Only these functions make `Escaped`."""

import re
import shlex
from collections.abc import Sequence


class Escaped(str):
    """Text that may stand in a file of the target language as it is."""

    __slots__ = ()


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


def shell(text: str) -> Escaped:
    """One word for a POSIX shell. Raises ValueError for what no process argument can hold."""
    if "\0" in text:
        raise ValueError("a NUL byte cannot be passed to a process")
    return Escaped(shlex.quote(text))


def shell_words(words: Sequence[str]) -> Escaped:
    """Several words of one command, on one line."""
    return Escaped(" ".join(shell(word) for word in words))


def shell_name(text: str) -> Escaped:
    """The name of a shell variable, which cannot be quoted. Raises ValueError for anything else."""
    if not _NAME.match(text):
        raise ValueError(f"`{text}` is not the name of a shell variable")
    return Escaped(text)


def comment(text: str) -> Escaped:
    """Part of one line: breaks and control characters become spaces, so nothing escapes from a comment."""
    return Escaped(_CONTROL.sub(" ", text))


def systemd(text: str) -> Escaped:
    """One word of an Exec line (systemd.service(5), Command lines): quoted, `%` and `$` doubled."""
    if "\0" in text:
        raise ValueError("a NUL byte cannot be passed to a process")
    doubled = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return Escaped('"' + "".join(_c_escape(letter) for letter in doubled) + '"')


def _c_escape(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 0x20 or ord(letter) == 0x7F else letter


def systemd_text(text: str) -> Escaped:
    """The value of a plain setting such as Description: one line, `%` doubled, no continuation at its end."""
    return Escaped(comment(text).replace("%", "%%").rstrip("\\ "))
