"""Shell words with their places: enough of the POSIX and bash grammar to read a script without running it."""

import re
from collections.abc import Iterator

from selfhost.visibility.readers.words import Command, Piece, Word

_BLANK = " \t\r"
_OPERATORS = ";&|()\n"
_REDIRECTION = re.compile(r"(?:\d*|&)(?:<<<|<<-?|>>|>\||<>|[<>]&?)")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=\Z")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED = re.compile(
    r"(?P<name>[A-Za-z_]\w*|[0-9]+|[@*])(?P<all>\[[@*]\])?(?:(?P<operator>:?[-=+?])(?P<word>.*))?\Z", re.DOTALL
)
_DEEPEST = 20
"""Arrays inside arrays; no shell knows any."""
_LONGEST_ARITHMETIC = 1000
_ESCAPED = '$`"\\\n'
_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}


def commands(text: str, *, line: int = 1, column: int = 1) -> Iterator[Command]:
    """Every simple command of a script that begins at a place, in order. Raises ValueError for an unclosed quote."""
    current = Command()
    for token in _Scanner(text, line, column).tokens():
        if isinstance(token, Word):
            current.words.append(token)
        else:
            if current.words:
                yield current
                current = Command()
            current.after = token if token.strip() or not current.after else current.after
    if current.words:
        yield current


class _Scanner:
    """Splits a script into words and the operators between commands; redirections are taken out."""

    def __init__(self, text: str, line: int, column: int) -> None:
        self._text = text
        self._at = 0
        self._line = line
        self._line_start = 1 - column
        self._depth = 0
        self._arithmetic_end = 0
        self._heredocs: list[tuple[str, bool]] = []

    def tokens(self) -> Iterator[Word | str]:
        while self._at < len(self._text):
            letter = self._text[self._at]
            if self._text.startswith("((", self._at):
                self._skip_arithmetic()
            elif letter in _OPERATORS and not self._text.startswith("&>", self._at):
                yield self._operator()
            elif letter in _BLANK:
                self._take()
            elif self._text.startswith(("\\\n", "\\\r\n"), self._at):
                self._take_through("\n")
            elif letter == "#":
                self._skip_to("\n")
            elif self._redirection():
                continue
            else:
                yield self._word()

    def _take(self) -> str:
        letter = self._text[self._at]
        self._at += 1
        if letter == "\n":
            self._line += 1
            self._line_start = self._at
        return letter

    def _skip_to(self, end: str) -> None:
        while self._at < len(self._text) and self._text[self._at] != end:
            self._take()

    def _take_through(self, end: str) -> None:
        self._skip_to(end)
        if self._at < len(self._text):
            self._take()

    def _operator(self) -> str:
        taken = self._take()
        if taken in "&|;" and self._text[self._at : self._at + 1] == taken:
            taken += self._take()
        if taken == "\n":
            for delimiter, tabs in self._heredocs:
                self._skip_heredoc(delimiter, tabs=tabs)
            self._heredocs.clear()
        return taken

    def _skip_heredoc(self, delimiter: str, *, tabs: bool) -> None:
        while self._at < len(self._text):
            end = self._text.find("\n", self._at)
            line = self._text[self._at : end if end >= 0 else len(self._text)].rstrip("\r")
            self._take_through("\n")
            if (line.lstrip("\t") if tabs else line) == delimiter:
                return

    def _skip_arithmetic(self) -> None:
        if 0 <= self._arithmetic_end <= self._at:  # looked for once, however many open
            self._arithmetic_end = self._text.find("))", self._at)
        end = self._arithmetic_end
        if end < 0 or end - self._at > _LONGEST_ARITHMETIC or "\n" in self._text[self._at : end]:
            self._take()  # two subshells
            return
        while self._at < end + 2:
            self._take()

    def _redirection(self) -> bool:
        match = _REDIRECTION.match(self._text, self._at)
        if not match or self._text.startswith(("<(", ">("), self._at):
            return False
        for _ in match[0]:
            self._take()
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._take()
        if self._at < len(self._text) and self._text[self._at] not in _OPERATORS:
            target = self._word().text
            if match[0].endswith(("<<", "<<-")):
                self._heredocs.append((target, match[0].endswith("-")))
        return True

    def _word(self) -> Word:
        word = Word("", self._line, column=self._at - self._line_start + 1)
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == "(" and self._depth < _DEEPEST and _ARRAY.match(word.text):
                word.array = self._array()
                break
            if self._text.startswith(("<(", ">("), self._at):
                self._substitution(word, self._take(), quoted=True)
            elif letter in _BLANK or letter in _OPERATORS or letter in "<>":
                break
            else:
                self._part(word)
        return word

    def _array(self) -> list[Word]:
        elements: list[Word] = []
        self._take()
        self._depth += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == ")":
                self._take()
                break
            if letter in _BLANK or letter in _OPERATORS or letter in "<>":
                self._take()
            elif letter == "#":
                self._skip_to("\n")
            elif self._text.startswith(("\\\n", "\\\r\n"), self._at):
                self._take_through("\n")
            else:
                elements.append(self._word())
        self._depth -= 1
        return elements

    def _part(self, word: Word) -> None:
        letter = self._take()
        following = self._text[self._at : self._at + 1]
        if letter == "'":
            word.add(self._until_quote(word), quoted=True)
        elif letter == '"':
            self._double_quoted(word)
        elif letter == "\\":
            self._escape(word)
        elif letter == "$" and following == "'":
            self._take()
            self._ansi_c(word)
        elif letter == "$" and following == '"':
            self._take()
            self._double_quoted(word)
        elif letter in "$`":
            self._substitution(word, letter, quoted=False)
        else:
            word.add(letter, quoted=False)

    def _escape(self, word: Word) -> None:
        if self._text.startswith(("\n", "\r\n"), self._at):
            self._take_through("\n")
        else:
            word.add(self._take() if self._at < len(self._text) else "\\", quoted=True)

    def _until_quote(self, word: Word) -> str:
        end = self._text.find("'", self._at)
        if end < 0:
            raise ValueError(f"line {word.line}: a quote is not closed")
        inside = self._text[self._at : end]
        while self._at <= end:
            self._take()
        return inside

    def _ansi_c(self, word: Word) -> None:
        while self._at < len(self._text):
            letter = self._take()
            if letter == "'":
                return
            if letter == "\\" and self._at < len(self._text):
                escaped = self._take()
                letter = _ANSI_C.get(escaped, escaped)
            word.add(letter, quoted=True)
        raise ValueError(f"line {word.line}: a quote is not closed")

    def _double_quoted(self, word: Word) -> None:
        word.add("", quoted=True)
        while self._at < len(self._text):
            letter = self._take()
            if letter == '"':
                return
            if letter == "\\" and self._at < len(self._text) and self._text[self._at] in _ESCAPED:
                escaped = self._take()
                word.add("" if escaped == "\n" else escaped, quoted=True)
            elif letter in "$`":
                self._substitution(word, letter, quoted=True)
            else:
                word.add(letter, quoted=True)
        raise ValueError(f"line {word.line}: a quote is not closed")

    def _substitution(self, word: Word, letter: str, *, quoted: bool) -> None:
        """Keep `$NAME`, `${…}`, `$(…)`, `<(…)` and backquotes as they are written."""
        following = self._text[self._at : self._at + 1]
        if letter == "`" or following in ("(", "{"):
            written = letter + self._enclosed(following if letter != "`" else "`")
            piece = _braced(written, quoted=quoted)
        elif letter == "$" and (match := _NAME.match(self._text, self._at)):
            written = letter + match[0]
            self._at = match.end()
            piece = _variable(written, match[0], quoted=quoted)
        else:
            word.add(letter, quoted=quoted)  # a lone dollar is a dollar
            return
        word.text += written
        word.dynamic = True
        word.many |= piece.whole_list or not quoted
        word.pieces.append(piece)

    def _enclosed(self, opening: str) -> str:
        """From here through the closing brace, parenthesis or backquote; quotes inside are skipped whole."""
        closing = {"(": ")", "{": "}"}.get(opening, "`")
        start, depth = self._at, 0
        while self._at < len(self._text):
            letter = self._take()
            if letter == "\\" and self._at < len(self._text):
                self._take()
            elif letter in "'\"" and closing == ")":
                self._skip_quoted(letter)
            elif letter == closing:
                depth -= 1
                if depth <= 0:
                    break
            elif letter == opening:
                depth += 1
        return self._text[start : self._at]

    def _skip_quoted(self, quote: str) -> None:
        """Through the end of a quote inside a substitution; double ones may hold escapes and further substitutions."""
        if self._text.find(quote, self._at) < 0:
            return
        while self._at < len(self._text):
            letter = self._take()
            if letter == quote:
                return
            if letter == "\\" and quote == '"' and self._at < len(self._text):
                self._take()
            elif letter == "$" and quote == '"' and self._text.startswith("(", self._at) and self._depth < _DEEPEST:
                self._depth += 1
                self._enclosed("(")
                self._depth -= 1


def _variable(written: str, name: str, *, quoted: bool) -> Piece:
    return Piece(kind="variable", text=written, name=name, whole_list=name in "@*", quoted=quoted)


def _braced(written: str, *, quoted: bool) -> Piece:
    match = _BRACED.match(written[2:-1]) if written.startswith("${") and written.endswith("}") else None
    if match is None:
        return Piece(kind="command", text=written, quoted=quoted)
    return Piece(
        kind="variable",
        text=written,
        name=match["name"],
        whole_list=bool(match["all"]) or match["name"] in "@*",
        operator=match["operator"] or "",
        word=match["word"] or "",
        quoted=quoted,
    )
