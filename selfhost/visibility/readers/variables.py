"""The variables of a script as far as they are certain without running it, and words with them filled in."""

from dataclasses import dataclass, field, replace

from selfhost.visibility.readers.shell import commands
from selfhost.visibility.readers.words import Piece, Word

_DEPTH = 8
"""Of defaults inside defaults; deeper ones are unknown."""
_LONGEST = 2**16
"""Letters of one variable; `A="$A$A"` in every line would grow without end."""
_MOST_WORDS = 2000
"""That one word may become; a list appended to itself in a loop of lines would grow without end."""


@dataclass(slots=True)
class Variables:
    """Values by name: a word, or the words of an array. A dynamic word is a value that only the run knows."""

    words: dict[str, list[Word]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)

    def unset(self, name: str, word: Word) -> None:
        """From here on it is known to be empty."""
        self.words[name] = [Word("", word.line, column=word.column)]
        self.arrays.discard(name)

    def unknown(self, name: str, word: Word) -> None:
        """A value that a loop or `read` gives."""
        self.words[name] = [Word(f"${name}", word.line, dynamic=True, column=word.column)]
        self.arrays.discard(name)

    def assign(self, name: str, value: Word, *, append: bool, maybe: bool) -> None:
        """`maybe`: behind a condition. What is set nowhere else counts as set; two different values are unknown."""
        is_array = value.array is not None
        new = [part for word in value.array for part in self.filled(word)] if value.array is not None else []
        new = new if is_array else [self.joined(value)]
        old = self.words.get(name)
        if append and old and (is_array or name in self.arrays):
            new = [*old, *new][:_MOST_WORDS]
        elif append and old:
            new = [_glued(old[0], new[0])]
        elif maybe and old is not None and [word.text for word in old] != [word.text for word in new]:
            self.unknown(name, value)
            return
        if sum(len(word.text) for word in new) > _LONGEST:
            self.unknown(name, value)
            return
        self.words[name] = new
        if is_array:
            self.arrays.add(name)
        elif not append:
            self.arrays.discard(name)

    def filled(self, word: Word) -> list[Word]:
        """The words that `word` becomes when known variables are put in. Unquoted text of a variable is split."""
        if not word.dynamic:
            return [word]
        said = [piece for piece in word.pieces if piece.text]
        if len(said) == 1 and (elements := self._elements(said[0])) is not None:
            return [replace(element) for element in elements]
        parts = [Word("", word.line, column=word.column)]
        for piece in word.pieces:
            value = self._value(piece, _DEPTH)
            if value is None:
                _add(parts[-1], piece)
            elif piece.quoted or piece.kind == "text":
                parts[-1].add(value, quoted=True)
            else:
                _split_on(parts, value)
        unquoted = all(not piece.quoted for piece in word.pieces)
        if len(parts) == 1 and not parts[0].text and unquoted:
            return []
        return [part for part in parts if part.text or part.pieces] or [parts[0]]

    def joined(self, word: Word) -> Word:
        """As in an assignment or inside quotes: one word, never split."""
        one = Word("", word.line, column=word.column)
        for piece in word.pieces if word.dynamic else ():
            value = self._value(piece, _DEPTH)
            if value is None:
                _add(one, piece)
            else:
                one.add(value, quoted=True)
        return one if word.dynamic else word

    def _elements(self, piece: Piece) -> list[Word] | None:
        known = self.words.get(piece.name)
        if piece.whole_list and known is not None and piece.name in self.arrays and not piece.operator:
            return known
        return None

    def _value(self, piece: Piece, depth: int) -> str | None:
        """None: only the run knows."""
        if piece.kind == "text":
            return piece.text
        if piece.kind == "command" or depth <= 0:
            return None
        known = self.words.get(piece.name)
        value = None
        if known and not any(word.dynamic for word in known):
            value = " ".join(word.text for word in known) if piece.whole_list else known[0].text
        if piece.operator in ("", "?", ":?"):
            return value
        if piece.operator in (":-", ":=", "-", "="):
            empty = known is None or (value == "" and piece.operator.startswith(":"))
            return self._default(piece.word, depth) if empty else value
        return None

    def _default(self, text: str, depth: int) -> str | None:
        try:
            parts = [word for command in commands(text) for word in command.words]
        except ValueError:
            return None
        if not parts:
            return ""
        values = [self._value(piece, depth - 1) for piece in parts[0].pieces]
        if len(parts) > 1:
            return text if not any(word.dynamic for word in parts) and text.isprintable() else None
        return None if None in values else "".join(value for value in values if value is not None)


def _add(word: Word, piece: Piece) -> None:
    word.text += piece.text
    word.dynamic = True
    word.many |= piece.whole_list or not piece.quoted
    word.pieces.append(piece)


def _split_on(parts: list[Word], value: str) -> None:
    """Continue the last of `parts` with `value`, whose blanks end words (the shell's field splitting)."""
    fields = value.split()
    if value[:1].isspace() and (parts[-1].text or parts[-1].pieces):
        parts.append(_after(parts[-1]))
    for number, text in enumerate(fields[:_MOST_WORDS]):
        if number:
            parts.append(_after(parts[-1]))
        parts[-1].add(text, quoted=True)
    if value[-1:].isspace() and fields:
        parts.append(_after(parts[-1]))


def _after(word: Word) -> Word:
    return Word("", word.line, column=word.column)


def _glued(first: Word, second: Word) -> Word:
    one = Word(first.text + second.text, second.line, first.dynamic or second.dynamic, second.column)
    one.pieces = [*first.pieces, *second.pieces]
    one.many = first.many or second.many
    return one
