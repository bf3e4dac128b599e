"""What is wrong with a YAML text, in words of its author: the line, what was found there, what cures it."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, Final

from selfhost.core.errors import InputError
from selfhost.core.redact import mask
from selfhost.core.tree import Tree
from selfhost.shapes.finding import Place

_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_WORDS: Final = (
    ("found character that cannot start any token", "a value begins with a letter that YAML keeps for itself"),
    ("tab character", "a tab stands where spaces belong"),
    ("mapping values are not allowed", "a `:` stands where no key may begin"),
    ("did not find expected key", "this line fits neither the map above it nor the one around that"),
    ("did not find expected '-'", "this line stands among the elements of a list and is none"),
    ("did not find expected ',' or ']'", "a `[` is not closed"),
    ("did not find expected ',' or '}'", "a `{` is not closed"),
    ("could not find expected ':'", "a key has no `:` behind it"),
    ("found unexpected end of stream", "a quote is not closed"),
    ("found unexpected document indicator", "a quote is not closed"),
    ("found unknown escape character", "a backslash in double quotes is followed by a letter that means nothing"),
    ("did not find expected node content", "a value is missing"),
    ("found unexpected ':'", "a `:` inside braces or brackets stands in no quotes"),
    ("found undefined tag handle", "a tag begins with a name that is not declared"),
)
_CURES: Final = (
    ("tab", "indent with spaces"),
    ("keeps for itself", "put the value in quotes"),
    ("no key may begin", "put a text that holds `: ` in quotes, or indent the line as those above it"),
    ("fits neither", "indent it as the keys it belongs to; put text behind a closing quote inside it"),
    ("among the elements", "indent it below the element that it belongs to, or begin it with `- `"),
    ("backslash", "use single quotes, in which a backslash is itself"),
    ("in no quotes", "put the value in quotes"),
    ("nor continued", "close it, or put a value that holds brackets, braces or a comma in quotes"),
    ("not closed", "close it"),
)


def broken(error: Any, text: str, path: str) -> InputError:
    """A fault that the parser saw (PyYAML's MarkedYAMLError)."""
    problem = str(error.problem or "")
    mark = error.problem_mark or error.context_mark
    if "maximum nesting depth" in problem:
        return too_deep(path, mark)
    place = Tree(mark.line + 1, mark.column + 1) if mark else Tree(1, 1)
    words = next((said for seen, said in _WORDS if seen in problem), problem)
    if "character that cannot start" in problem and _letter(text, place) == "\t":
        words = "a tab stands where spaces belong"
    since = error.context_mark
    if since is not None and "did not find expected ','" in problem and _letter(text, place):
        sign = "[" if "]" in problem else "{"
        return wrong(text, path, place, f"the `{sign}` of line {since.line + 1} is neither closed nor continued here")
    begun = since is not None and ("not closed" in words or "has no `:`" in words)
    if begun:
        place = Tree(since.line + 1, since.column + 1)
    return wrong(text, path, place, words)


def wrong(text: str, path: str, place: Tree, words: str) -> InputError:
    line = _line(text, place.line)
    cure = next((said for seen, said in _CURES if seen in words), "correct the line")
    why = "Until the text can be parsed, nothing that it asks for can be told."
    if _TEMPLATE.search(line):
        why, cure = "The line is a template's: YAML comes out of it only when it is filled in.", "render it first"
    return InputError(
        words,
        why=why,
        fix=(cure,),
        evidence=f"{place.line} | {mask(line)}" if line else "",
        id="CF050",
        place=Place(path=path, line=place.line, column=place.column),
    )


def twice(path: str, key: Tree, first: Tree, name: str) -> InputError:
    shown = name if len(name) < 60 else f"{name[:57]}…"
    return InputError(
        f"`{shown}` is already said in line {first.line}",
        why="A key stands once in a map. Compose and kubectl refuse the file; other programs take one of the two "
        "and say nothing.",
        fix=(f"keep one of lines {first.line} and {key.line}",),
        id="CF051",
        place=Place(path=path, line=key.line, column=key.column),
    )


def too_deep(path: str, mark: Any) -> InputError:
    return InputError(
        "maps or lists are nested deeper than 200 levels",
        why="A launch file has about ten; this one is damaged, or was made to exhaust whoever reads it.",
        fix=("look for brackets or dashes that open and never close",),
        id="CF052",
        place=Place(path=path, line=mark.line + 1 if mark else None, column=mark.column + 1 if mark else None),
    )


def too_much(event: Any, path: str, *, itself: bool) -> InputError:
    mark = event.start_mark
    what = f"`*{event.anchor}` stands inside its own anchor" if itself else "aliases repeat more than 500,000 values"
    return InputError(
        what,
        why="The data would have no end."
        if itself
        else "A text of this kind is made to fill the memory of its reader.",
        fix=("write the values out",),
        id="CF052",
        place=Place(path=path, line=mark.line + 1, column=mark.column + 1),
    )


def unknown_alias(event: Any, known: Iterable[str], text: str, path: str) -> InputError:
    mark = event.start_mark
    place = Tree(mark.line + 1, mark.column + 1)
    error = wrong(text, path, place, f"no anchor `&{event.anchor}` stands above `*{event.anchor}`")
    alike = difflib.get_close_matches(event.anchor, list(known), n=1, cutoff=0.7)
    error.fix = (f"perhaps `*{alike[0]}`",) if alike else ("put a text that begins with `*` in quotes",)
    return error


def not_text(error: Any, text: str, path: str) -> InputError:
    """A control character, or half of a pair of UTF-16."""
    code, at = _bad_letter(error, text)
    line = text.count("\n", 0, at) + 1
    return InputError(
        f"{code} is no letter of a text",
        why="The file is binary, was cut or saved in another encoding than UTF-8.",
        fix=("save it as UTF-8, or name the launch file itself",),
        id="CF053",
        place=Place(path=path, line=line, column=at - text.rfind("\n", 0, at)),
    )


def _bad_letter(error: Any, text: str) -> tuple[str, int]:
    if isinstance(error, UnicodeEncodeError):
        return f"U+{ord(text[error.start]):04X}", error.start
    character = getattr(error, "character", 0)
    letter = chr(character) if isinstance(character, int) and 0 <= character < 0x110000 else str(character)[:1]
    at = text.find(letter) if letter else 0
    return f"U+{ord(letter or ' '):04X}", max(at, 0)


def _line(text: str, number: int) -> str:
    """One line for the eyes of a person, cut to a width that fits."""
    lines = text.split("\n", number)
    line = lines[number - 1].rstrip("\r") if number <= len(lines) else ""
    return line if len(line) <= 120 else f"{line[:117]}…"


def _letter(text: str, place: Tree) -> str:
    lines = text.split("\n", place.line)
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    return line.lstrip(" ")[:1] if line[: place.column].strip() == "" else line[place.column - 1 : place.column]
