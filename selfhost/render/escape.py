"""Text made safe for the language it is written into. Only these functions make `Escaped`."""

import re
import shlex
from collections.abc import Sequence


class Escaped(str):
    """Text that may stand in a file of the target language as it is."""

    __slots__ = ()


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN_YAML = re.compile(r"(?:--)?[A-Za-z/][A-Za-z0-9_./@-]*(?:[:=][A-Za-z][A-Za-z0-9_./@:=-]*[A-Za-z0-9_])?\Z")
"""Texts that YAML 1.1 and 1.2 take as they are, apart from the words below."""
_WORDS_OF_YAML = frozenset(["y", "yes", "n", "no", "true", "false", "on", "off", "null", "inf", "nan"])
_SINGLE_QUOTED = re.compile(r"[ -&(-~]*\Z")
_PLAIN_SYSTEMD = re.compile(r"[A-Za-z0-9_./:=,@+-]+\Z")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]+")


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


def systemd_word(text: str) -> Escaped:
    """As `systemd`, without quotes where none are needed."""
    return Escaped(text) if _PLAIN_SYSTEMD.match(text) else systemd(text)


def systemd_value(text: str) -> Escaped:
    """A whole setting that becomes one word of ExecStart=. Raises ValueError for what would not come back as it is."""
    if not holds_in_unit(text):
        raise ValueError(f"{text!r} cannot stand in a unit without quotes")
    return Escaped(text.replace("%", "%%").replace("$", "$$"))


def holds_in_unit(text: str) -> bool:
    """Whether a setting without quotes keeps it: no control letters, blanks, quotes or backslashes."""
    return (
        bool(text) and not _CONTROL.search(text) and not any(letter.isspace() or letter in "'\"\\" for letter in text)
    )


def yaml(text: str) -> Escaped:
    """One scalar that is a text for YAML 1.1 and 1.2, block or flow."""
    if _PLAIN_YAML.match(text) and text.lower() not in _WORDS_OF_YAML:
        return Escaped(text)
    if _SINGLE_QUOTED.match(text) and '"' in text:
        return Escaped(f"'{text}'")
    from yaml import safe_dump  # at use

    # `default_style` and `allow_unicode` are what held for odd texts; without a width no line is folded
    return Escaped(safe_dump(text, default_style='"', width=10**9, allow_unicode=True).rstrip("\n"))


def compose(text: str) -> Escaped:
    """As `yaml`, for a value in which Compose looks for variables."""
    if "\0" in text:
        raise ValueError("a NUL byte cannot be passed to a process")
    return yaml(text.replace("$", "$$"))
