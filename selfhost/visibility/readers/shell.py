"""POSIX shell words with their lines: enough of the grammar to read a launch script without running it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

_SEPARATORS = ";&|()<>"


@dataclass(slots=True)
class Word:
    """One word after quote removal. `dynamic`: it holds a substitution, so its value is known only at run time."""

    text: str
    line: int
    dynamic: bool = False


@dataclass(slots=True)
class Command:
    """One simple command."""

    words: list[Word] = field(default_factory=list)


def commands(text: str) -> Iterator[Command]:
    """Every simple command of a script, in order. Raises ValueError for an unclosed quote."""
    current = Command()
    for token in _Scanner(text).tokens():
        if isinstance(token, Word):
            current.words.append(token)
        elif current.words:
            yield current
            current = Command()
    if current.words:
        yield current


class _Scanner:
    """Splits a script into words and command ends (None)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def tokens(self) -> Iterator[Word | None]:
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == "\n" or letter in _SEPARATORS:
                self._take()
                yield None
            elif letter in " \t":
                self._take()
            elif letter == "\\" and self._text[self._at + 1 : self._at + 2] == "\n":
                self._take()
                self._take()
            elif letter == "#":
                while self._at < len(self._text) and self._text[self._at] != "\n":
                    self._take()
            else:
                yield self._word()

    def _take(self) -> str:
        letter = self._text[self._at]
        self._at += 1
        self._line += letter == "\n"
        return letter

    def _word(self) -> Word:
        word = Word("", self._line)
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter in " \t\n" or letter in _SEPARATORS:
                break
            self._part(word)
        return word

    def _part(self, word: Word) -> None:
        letter = self._take()
        if letter == "'":
            word.text += self._until_quote(word)
        elif letter == '"':
            self._double_quoted(word)
        elif letter == "\\":
            escaped = self._take() if self._at < len(self._text) else "\\"
            word.text += "" if escaped == "\n" else escaped
        elif letter in "$`":
            self._substitution(word, letter)
        else:
            word.text += letter

    def _until_quote(self, word: Word) -> str:
        end = self._text.find("'", self._at)
        if end < 0:
            raise ValueError(f"line {word.line}: a quote is not closed")
        inside = self._text[self._at : end]
        self._line += inside.count("\n")
        self._at = end + 1
        return inside

    def _double_quoted(self, word: Word) -> None:
        while self._at < len(self._text):
            letter = self._take()
            if letter == '"':
                return
            if letter == "\\" and self._at < len(self._text) and self._text[self._at] in '$`"\\\n':
                escaped = self._take()
                word.text += "" if escaped == "\n" else escaped
            elif letter in "$`":
                self._substitution(word, letter)
            else:
                word.text += letter
        raise ValueError(f"line {word.line}: a quote is not closed")

    def _substitution(self, word: Word, letter: str) -> None:
        """Keep `$NAME`, `${…}`, `$(…)` and backquotes as they are written."""
        following = self._text[self._at : self._at + 1]
        word.text += letter
        if letter == "$" and not (following.isalnum() or following in ("_", "{", "(", "@", "*", "?", "#", "$", "!")):
            return  # a lone dollar is a dollar
        word.dynamic = True
        closing = {"(": ")", "{": "}"}.get(following if letter == "$" else "`", "`" if letter == "`" else "")
        depth = 0
        while closing and self._at < len(self._text):
            taken = self._take()
            word.text += taken
            depth += taken == following and closing != "`"
            depth -= taken == closing
            if depth <= 0 and taken == closing:
                return
