"""`command` and `entrypoint` of a Compose service: a list, or one text that is split as a shell would."""

from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree, as_written
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Spot
from selfhost.visibility.readers.compose_project import Project


def words(tree: Tree | None, project: Project) -> tuple[tuple[str, ...] | None, list[Spot]]:
    """The words and the place of each; None where the image's own stay. Raises InputError for an open quote."""
    if tree is None or tree.is_null or tree.map is not None:
        return None, []
    if tree.list is not None:
        elements = [element for element in tree.list if element.is_scalar]
        return tuple(as_written(element) for element in elements), [project.spot(element) for element in elements]
    try:
        split = split_words(tree.text)
    except ValueError as error:
        raise InputError(
            f"in this command {error}",
            why="Compose splits a command that is one text into words, much as a shell does, and refuses this one.",
            fix=("put what belongs together in quotes, or write the command as a list",),
            id="CF046",
            place=Place(path=tree.path, line=tree.line, column=tree.column),
        ) from None
    return tuple(split), _spots(tree, split, project)


_FURTHER: Final = 20
"""Lines in which the next word is looked for."""
_QUOTES: Final = ("'", '"', "`")
_ENDS: Final = frozenset(";&|<>")
_ESCAPES: Final = {"n": "\n", "t": "\t"}


def split_words(text: str) -> list[str]:
    """As Compose does it (mattn/go-shellwords): no variables, and the first unquoted `;`, `&`, `|`, `<`, `>` ends it.

    A backslash at the end of a line leaves the line break in the next word, which nobody means: it is taken away.
    Raises ValueError for an open quote and for a bare parenthesis.
    """
    found: list[str] = []
    word: str | None = None
    quote, at = "", 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "\\" and quote != "'":
            if at == len(text):
                raise ValueError("nothing follows the last backslash")
            word = (word or "") + _ESCAPES.get(text[at], text[at])
            at += 1
        elif letter in _QUOTES and quote in ("", letter):
            quote = "" if quote else letter
            word = (word or "") + ("`" if letter == "`" else "")
        elif quote:
            word = (word or "") + letter
        elif letter in " \t\r\n":
            found += [] if word is None else [word.strip("\n ")]
            word = None
        elif letter in _ENDS:
            break
        elif letter == ")" or (letter == "(" and not (word or "").endswith("$")):
            raise ValueError(f"`{letter}` stands outside of quotes")
        else:
            at, word = _plain(text, at - 1, word or "")
    if quote:
        raise ValueError("a quote is not closed")
    return [*found, *([] if word is None else [word.strip("\n ")])]


def _plain(text: str, at: int, word: str) -> tuple[int, str]:
    """One letter, or `(…)` behind a `$` as it is."""
    if text[at] != "(":
        return at + 1, word + text[at]
    end = text.find(")", at)
    if end < 0:
        raise ValueError("a `$(` is not closed")
    return end + 1, word + text[at : end + 1]


def _spots(tree: Tree, split: list[str], project: Project) -> list[Spot]:
    """Each word where it is seen next in the lines of the text; the text itself where it is not seen as it is."""
    lines = project.lines.get(tree.path, [])
    line, column = tree.line + tree.block, 1 if tree.block else tree.column
    end = min(tree.end_line, len(lines))
    spots = []
    for word in split:
        found = _next(lines, word, line, column, min(end, line + _FURTHER))
        if found is not None:
            line, column = found
            spots.append(project.spot_of(Spot(line=line, column=column, path=tree.path)))
            column += len(word)
        else:
            spots.append(project.spot(tree))
    return spots


def _next(lines: list[str], word: str, line: int, column: int, last: int) -> tuple[int, int] | None:
    if not word or "\n" in word:
        return None
    for number in range(line, last + 1):
        at = lines[number - 1].find(word, column - 1 if number == line else 0)
        if at >= 0:
            return number, at + 1
    return None
