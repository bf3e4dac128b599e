"""`${NAME}` in a Compose file, filled in from `.env`; what only the shell of the run knows stays as it is written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree
from selfhost.shapes.finding import Place

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OPERATOR = re.compile(r":?[-?+]")
_DEPTH: Final = 20
"""Of defaults inside defaults."""
_LONGEST: Final = 2**20
"""Letters of one filled-in text, and those that all of one file may grow by: `B=$A$A`, `C=$B$B` has no end."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with its variables filled in. `unknown` are names without a value, left in it as `${NAME}`."""

    text: str
    unknown: tuple[str, ...] = ()


def interpolate(text: str, known: Mapping[str, str], *, depth: int = _DEPTH) -> Filled:
    """As Compose does it: `$NAME`, `${NAME}` with `:-`, `-`, `:?`, `?`, `:+`, `+`, and `$$`.

    Raises ValueError where Compose refuses the text.
    """
    parts: list[str] = []
    unknown: list[str] = []
    at = grown = 0
    while (dollar := text.find("$", at)) >= 0:
        parts.append(text[at:dollar])
        following = text[dollar + 1 : dollar + 2]
        if following == "$":
            parts.append("$")
            at = dollar + 2
            continue
        filled, at = _reference(text, dollar, known, depth)
        parts.append(filled.text)
        unknown += filled.unknown
        grown += len(filled.text)
        if grown > _LONGEST:
            raise ValueError("the variables of one text fill more than a million letters")
    parts.append(text[at:])
    return Filled("".join(parts), tuple(dict.fromkeys(unknown)))


def _reference(text: str, dollar: int, known: Mapping[str, str], depth: int) -> tuple[Filled, int]:
    braced = text[dollar + 1 : dollar + 2] == "{"
    name = _NAME.match(text, dollar + 1 + braced)
    if name is None:
        raise ValueError(f"`{text[dollar : dollar + 2]}` names no variable")
    if not braced:
        return _value(name[0], known), name.end()
    end = _end(text, name.end())
    inner = text[name.end() : end]
    if not inner:
        return _value(name[0], known), end + 1
    operator = _OPERATOR.match(inner)
    if operator is None:
        raise ValueError(f"`{text[dollar : end + 1][:40]}` has no operator that Compose knows behind the name")
    word = inner[operator.end() :]
    return _by_operator(name[0], operator[0], word, known, depth), end + 1


def _end(text: str, start: int) -> int:
    """Where the brace of a reference closes; braces of references inside it are its own."""
    deep, at = 0, start
    while at < len(text):
        if text.startswith("${", at):
            deep += 1
            at += 1
        elif text[at] == "}":
            if not deep:
                return at
            deep -= 1
        at += 1
    raise ValueError("a `${` is not closed")


def _value(name: str, known: Mapping[str, str]) -> Filled:
    return Filled(known[name]) if name in known else Filled(f"${{{name}}}", (name,))


def _by_operator(name: str, operator: str, word: str, known: Mapping[str, str], depth: int) -> Filled:
    """A variable that the text does not set is taken for unset where it has a default: that is what the file says."""
    if depth <= 0:
        raise ValueError("defaults are nested too deep")
    is_set = name in known and (known[name] != "" or not operator.startswith(":"))
    if operator.endswith("+"):
        return interpolate(word, known, depth=depth - 1) if is_set else Filled("")
    if is_set or operator.endswith("?"):
        return _value(name, known) if is_set else Filled(f"${{{name}}}", (name,))
    return interpolate(word, known, depth=depth - 1)


def fill(tree: Tree, known: Mapping[str, str]) -> Tree:
    """The tree with every text filled in. Raises InputError where Compose refuses one."""
    return _Filling(known).fill(tree)


class _Filling:
    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known
        self.done: dict[int, Tree] = {}
        self.grown = 0

    def fill(self, tree: Tree) -> Tree:
        """What several aliases share is filled in once."""
        if id(tree) in self.done:
            return self.done[id(tree)]
        if tree.map is not None:
            new = {key: self.fill(value) for key, value in tree.map.items()}
            same = all(new[key] is value for key, value in tree.map.items())
            filled = tree if same else replace(tree, map=new)
        elif tree.list is not None:
            elements = [self.fill(value) for value in tree.list]
            same = all(one is other for one, other in zip(elements, tree.list, strict=True))
            filled = tree if same else replace(tree, list=elements)
        else:
            filled = self._scalar(tree) if "$" in tree.text else tree
        self.done[id(tree)] = filled
        return filled

    def _scalar(self, tree: Tree) -> Tree:
        try:
            found = interpolate(tree.text, self.known)
            self.grown += max(0, len(found.text) - len(tree.text))
            if self.grown > _LONGEST:
                raise ValueError("the variables of this file fill more than a million letters")  # noqa: TRY301
        except ValueError as error:
            raise _refused(tree, str(error)) from None
        return replace(tree, text=found.text, unknown=found.unknown, quoted=True)


def _refused(tree: Tree, words: str) -> InputError:
    return InputError(
        words,
        why="Compose fills in variables before it reads anything else, and stops here. A `$` that is meant for the "
        "container is written `$$`.",
        fix=("write `$$` for a plain `$`, or complete the reference: `${NAME}`, `${NAME:-default}`",),
        id="CF045",
        place=Place(path=tree.path, line=tree.line, column=tree.column),
    )
