"""A word of a command line with its place, and the parts of it that only a run would know."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a word: text, or a variable with how it is asked for. `command`: known only when the script runs."""

    kind: Literal["text", "variable", "command"]
    text: str
    name: str = ""
    whole_list: bool = False
    """As `$@` and `${NAMES[@]}`: one word an element."""
    operator: str = ""
    """Such as `:-` with `word` as the value where there is none."""
    word: str = ""
    quoted: bool = False


@dataclass(slots=True)
class Word:
    """One word after quote removal. `dynamic`: it holds a substitution, so its value is known only at run time."""

    text: str
    line: int
    dynamic: bool = False
    column: int = 1
    pieces: list[Piece] = field(default_factory=list)
    array: "list[Word] | None" = None
    """Elements of `NAME=(…)`."""
    many: bool = False
    """Dynamic and unquoted, or a list: it may become no word, one or several."""

    def add(self, text: str, *, quoted: bool) -> None:
        self.text += text
        last = self.pieces[-1] if self.pieces else None
        if last and last.kind == "text" and last.quoted == quoted:
            text = last.text + text
            self.pieces.pop()
        self.pieces.append(Piece(kind="text", text=text, quoted=quoted))

    def from_(self, start: int) -> "Word":
        """What follows `start` letters of a word without substitutions before it."""
        rest = Word(self.text[start:], self.line, self.dynamic, self.column + start, many=self.many)
        left = start
        for piece in self.pieces:
            if left >= len(piece.text):
                left -= len(piece.text)
            elif left:
                rest.pieces.append(Piece(kind="text", text=piece.text[left:], quoted=piece.quoted))
                left = 0
            else:
                rest.pieces.append(piece)
        return rest


@dataclass(slots=True)
class Command:
    """One simple command. `after` is the operator before it, as `&&`, `||`, `|`, `;`."""

    words: list[Word] = field(default_factory=list)
    after: str = ""
