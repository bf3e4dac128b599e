"""Files of systemd's syntax: sections, keys and quoted words with their places (systemd.syntax(7))."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from selfhost.visibility.readers.words import Piece, Word

_SECTION = re.compile(r"\s*\[(?P<name>[^\]]+)\]\s*\Z")
_KEY = re.compile(r"(?P<indent>\s*)(?P<key>[A-Za-z][A-Za-z0-9-]*)\s*=\s*")
_BLANKS = " \t\n\r"
"""What systemd splits words at; other blanks of Unicode are letters to it."""
_SPECIFIER = re.compile(r"%(?P<letter>[%A-Za-z])")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_CODES = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})")


@dataclass(slots=True, kw_only=True)
class Entry:
    """One assignment. `starts` says where parts of `text` stand: offset, line, column."""

    section: str
    key: str
    text: str = ""
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    line: int
    column: int

    def append(self, text: str, line: int, column: int) -> None:
        self.starts.append((len(self.text), line, column))
        self.text += text

    def word(self) -> Word:
        """The whole value as one word, standing where its key does."""
        return specified(Word("", self.line, column=self.column), self.text)

    def words(self) -> list[Word]:
        """The value split at blanks, quotes taken off, each word at its own place."""
        return [specified(Word("", *self._place(at)), text) for at, text in _split(self.text)]

    def _place(self, offset: int) -> tuple[int, bool, int]:
        start, line, column = next(part for part in reversed(self.starts or [(0, self.line, 1)]) if part[0] <= offset)
        return line, False, column + offset - start


def entries(text: str) -> list[Entry]:
    """Every assignment, in order; lines that are none are passed over, as systemd does with a warning."""
    found: list[Entry] = []
    section, open_entry = "", None
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip(_BLANKS)
        if line.lstrip().startswith(("#", ";")):
            continue
        goes_on = line.endswith("\\")
        body = line[:-1].rstrip(_BLANKS) if goes_on else line
        if open_entry is not None:
            open_entry.append(" " + body.lstrip(), number, len(body) - len(body.lstrip()))
        elif named := _SECTION.match(line):
            section = named["name"]
            continue
        elif match := _KEY.match(line):
            entry = Entry(section=section, key=match["key"], line=number, column=len(match["indent"]) + 1)
            entry.append(body[match.end() :], number, match.end() + 1)
            found.append(entry)
            open_entry = entry
        if not goes_on:
            open_entry = None
    return found


def specified(word: Word, text: str) -> Word:
    """`%%` is a percent sign; any other specifier is known only to the running systemd."""
    at = 0
    for match in _SPECIFIER.finditer(text):
        word.add(text[at : match.start()], quoted=True)
        if match["letter"] == "%":
            word.add("%", quoted=True)
        else:
            word.text += match[0]
            word.dynamic = True
            word.pieces.append(Piece(kind="command", text=match[0], quoted=True))
        at = match.end()
    word.add(text[at:], quoted=True)
    return word


def _split(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
            continue
        start = at
        at, word = _one(text, at)
        yield start, word


def _one(text: str, at: int) -> tuple[int, str]:
    """The word that begins at `at`, and where it ends. A quote that is not closed reaches to the end."""
    word, quote = "", ""
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "\\" and at < len(text):
            at, unescaped = _escape(text, at)
            word += unescaped
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word += letter
        elif letter in "'\"":
            quote = letter
        elif letter in _BLANKS:
            break
        else:
            word += letter
    return at, word


def _escape(text: str, at: int) -> tuple[int, str]:
    code = _CODES.match(text, at)
    if code is not None:
        digits, base = (code[4], 8) if code[4] else (code[1] or code[2] or code[3], 16)
        number = int(digits, base)
        return code.end(), chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return at + 1, _ESCAPES.get(text[at], text[at])
