"""A document as data in which every value knows its line and column: what readers of YAML and JSON walk over."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from selfhost.shapes.workload import Spot

_PLAIN: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_YES: Final = ("y", "yes", "on", "true", "t", "1")
_WHOLE = re.compile(r"[-+]?(?:0o?[0-7]+|0x[0-9a-fA-F]+|0b[01]+|[1-9]\d*|0)\Z")
_REAL = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?\Z")
_SPECIAL = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_EXPONENT_FROM: Final = 1e21
_LONGEST: Final = 64
"""Letters of a number; a longer run of digits stays a text."""

Scalar = str | int | float | bool | None


@dataclass(slots=True)
class Tree:
    """One value: a map, a list, or a text. Places are those of its first letter, from 1.

    An alias is the very tree of its anchor, so a value stands where it is written, not where it is used.
    """

    line: int
    column: int
    path: str = ""
    """The file that it stands in."""
    text: str = ""
    """Of a scalar, after quotes and folds are taken away."""
    quoted: bool = False
    """In quotes or a block, or with a tag of its own: never a number or a yes."""
    block: bool = False
    """Behind `|` or `>`, so that its words begin in the line below."""
    tag: str = ""
    """Such as `!reset`; empty for the usual ones."""
    map: dict[str, "Tree"] | None = None
    list: "list[Tree] | None" = None
    keys: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Line, column and file of each key of a map."""
    end_line: int = 0
    """The last line of a scalar."""
    unknown: tuple[str, ...] = ()
    """Variables in the text whose values only the run knows, as Compose's `${NAME}`."""

    @property
    def scalar(self) -> Scalar:
        """A scalar as YAML 1.2 and Go's decoders see it: `no` is a text, `0755` is 493, `22:22` is a text."""
        return self.text if self.quoted else plain(self.text)

    @property
    def is_scalar(self) -> bool:
        return self.map is None and self.list is None

    @property
    def is_null(self) -> bool:
        return self.is_scalar and not self.quoted and self.text in _PLAIN and _PLAIN[self.text] is None

    @property
    def spot(self) -> Spot:
        return Spot(line=self.line, column=self.column, path=self.path)

    @property
    def data(self) -> object:
        """Plain Python, maps and lists included."""
        if self.map is not None:
            return {key: tree.data for key, tree in self.map.items()}
        if self.list is not None:
            return [tree.data for tree in self.list]
        return self.scalar

    def at(self, *path: str | int) -> "Tree | None":
        """The value at the end of keys and numbers; None where the path ends early."""
        tree: Tree | None = self
        for step in path:
            if tree is None:
                return None
            if isinstance(step, str):
                tree = tree.map.get(step) if tree.map is not None else None
            else:
                tree = tree.list[step] if tree.list is not None and 0 <= step < len(tree.list) else None
        return tree

    def items(self) -> Iterator[tuple[str, "Tree"]]:
        """Of a map; nothing for anything else."""
        yield from (self.map or {}).items()

    def elements(self) -> Iterator["Tree"]:
        """Of a list; nothing for anything else."""
        yield from self.list or ()

    def key_spot(self, name: str) -> Spot:
        """Where the key `name` stands; the map itself when there is none."""
        line, column, path = self.keys.get(name, (self.line, self.column, self.path))
        return Spot(line=line, column=column, path=path)

    def said(self, *path: str | int) -> str:
        """The text at `path`; empty for null, for nothing, for a map or a list."""
        tree = self.at(*path)
        return "" if tree is None or not tree.is_scalar or tree.is_null else tree.text

    def yes(self, *path: str | int) -> bool:
        """Whether the value at `path` says so, in the words of YAML 1.1 too: `yes`, `on`, `"true"`."""
        return self.said(*path).strip().lower() in _YES


def plain(text: str) -> Scalar:
    """A text without quotes as its type. Dates and sixties (`22:22`) stay texts, as in Go's YAML."""
    if text in _PLAIN:
        return _PLAIN[text]
    bare = text.replace("_", "")
    if len(text) > _LONGEST or text[0] not in "-+.0123456789":
        return text
    if _WHOLE.match(bare):
        return _whole(bare)
    if _REAL.match(bare) and text[0] != "_":
        return float(bare)
    if _SPECIAL.match(text):
        return float(text.lower().replace(".", ""))
    return text


def _whole(text: str) -> int:
    digits = text.lstrip("-+")
    old_octal = digits[0] == "0" and digits.isdecimal() and len(digits) > 1
    return int(text.replace(digits, f"0o{digits[1:]}"), 0) if old_octal else int(text, 0)


def as_written(tree: Tree) -> str:
    """A scalar as Go prints it: `0755` is 493, `1.10` is 1.1, `True` is true; a text is itself."""
    value = tree.scalar
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXPONENT_FROM else repr(value)
    return "" if value is None else str(value)
