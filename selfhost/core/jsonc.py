"""JSON text → the same trees as YAML's, also with comments and trailing commas as editors allow them in settings."""

import json
import re
from bisect import bisect_right
from typing import Final

from selfhost.core.tree import Tree
from selfhost.core.yaml_faults import too_deep, twice, wrong

DEEPEST: Final = 200
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<mark>[{}\[\]:,])"""
    r"""|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<plain>-?\d[\d.eE+-]*|true|false|null)""",
    re.DOTALL,
)
_LITERALS: Final = ("true", "false", "null")
_HALF = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z")


class _Fault(Exception):
    def __init__(self, at: int, words: str) -> None:
        super().__init__(words)
        self.at = at
        self.words = words


def tree_of_json(text: str, *, path: str) -> Tree | None:
    """The tree of a text that is JSON; None when it is none, for YAML may still make sense of it.

    Raises InputError for a key said twice and for endless nesting.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return _Parser(text, path, comments=False).document()
    except _Fault:
        return None


def tree_of_jsonc(text: str, *, path: str) -> Tree:
    """The tree of a JSON text with comments. Raises InputError, with its place, for what is none."""
    text = text.removeprefix("\ufeff")
    parser = _Parser(text, path, comments=True)
    try:
        return parser.document()
    except _Fault as fault:
        line, column = parser.place(fault.at)
        raise wrong(text, path, Tree(line, column), fault.words) from None


class _Parser:
    def __init__(self, text: str, path: str, *, comments: bool) -> None:
        self.text = text
        self.path = path
        self.comments = comments
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self.starts, at)
        return line, at - self.starts[line - 1] + 1

    def document(self) -> Tree:
        """Tokens one by one; open maps and lists on a stack of their own."""
        open_: list[Tree] = []
        keys: list[Tree | None] = []
        root: Tree | None = None
        wants = "value"
        for kind, word, at in self._tokens():
            if root is not None:
                raise _Fault(at, "more stands behind the end of the JSON value")
            if kind == "mark" and word in "}]":
                root = self._close(open_, keys, word, at, wants)
                wants = "next"
            elif kind == "mark" and word in ":,":
                wants = self._between(word, at, wants, open_)
            else:
                wants, root = self._value(open_, keys, (kind, word, at), wants)
        if root is None:
            raise _Fault(len(self.text), self._unclosed(open_))
        return root

    def _tokens(self) -> "list[tuple[str, str, int]]":
        found = []
        at, length = 0, len(self.text)
        if half := _HALF.search(self.text):
            raise _Fault(half.start(), "half of a pair of UTF-16 is no letter")
        while at < length:
            match = _TOKEN.match(self.text, at)
            if match is None or (match.lastgroup == "comment" and not self.comments):
                raise _Fault(at, "this is no JSON" if self.text[at] != '"' else "a quote is not closed")
            if match.lastgroup not in ("blank", "comment"):
                found.append((match.lastgroup or "", match[0], at))
            at = match.end()
        return found

    def _value(
        self, open_: list[Tree], keys: list[Tree | None], token: tuple[str, str, int], wants: str
    ) -> tuple[str, Tree | None]:
        kind, word, at = token
        if wants not in ("value", "key", "value or end", "key or end"):
            raise _Fault(at, f"a `{':' if wants == ':' else ','}` is missing in front of this")
        tree = self._tree(kind, word, at)
        if wants.startswith("key"):
            if kind != "string":
                raise _Fault(at, "a key stands in double quotes")
            self._once(open_[-1], tree)
            keys[-1] = tree
            return ":", None
        self._attach(open_, keys, tree)
        if kind == "mark":
            if len(open_) >= DEEPEST:
                line, column = self.place(at)
                raise too_deep(self.path, _Mark(line - 1, column - 1))
            open_.append(tree)
            keys.append(None)
            return ("key or end" if word == "{" else "value or end"), None
        return "next", None if open_ else tree

    def _tree(self, kind: str, word: str, at: int) -> Tree:
        line, column = self.place(at)
        if kind == "mark":
            is_map = word == "{"
            return Tree(line, column, self.path, map={} if is_map else None, list=None if is_map else [])
        if kind == "string":
            try:
                text = _whole(json.loads(word))
            except ValueError:
                raise _Fault(at, "a backslash in double quotes is followed by a letter that means nothing") from None
            return Tree(line, column, self.path, text=text, quoted=True, end_line=line)
        if word not in _LITERALS and not _NUMBER.match(word):
            raise _Fault(at, f"`{word[:20]}` is no number")
        return Tree(line, column, self.path, text=word, end_line=line)

    def _once(self, parent: Tree, key: Tree) -> None:
        if key.text in parent.keys:
            line, column, _ = parent.keys[key.text]
            raise twice(self.path, key, Tree(line, column), key.text)
        parent.keys[key.text] = (key.line, key.column, self.path)

    def _attach(self, open_: list[Tree], keys: list[Tree | None], tree: Tree) -> None:
        if not open_:
            return
        parent, key = open_[-1], keys[-1]
        if parent.list is not None:
            parent.list.append(tree)
        elif parent.map is not None and key is not None:
            parent.map[key.text] = tree

    def _between(self, word: str, at: int, wants: str, open_: list[Tree]) -> str:
        if word == ":" and wants == ":":
            return "value"
        if word == "," and wants == "next" and open_:
            ends = " or end" if self.comments else ""
            return ("value" if open_[-1].list is not None else "key") + ends
        raise _Fault(at, f"this `{word}` stands in no place for one")

    def _close(self, open_: list[Tree], keys: list[Tree | None], word: str, at: int, wants: str) -> Tree | None:
        fits = bool(open_) and (word == "]") == (open_[-1].list is not None)
        if not fits or not (wants == "next" or wants.endswith("end")):
            raise _Fault(at, f"this `{word}` closes nothing")
        done = open_.pop()
        keys.pop()
        return None if open_ else done

    def _unclosed(self, open_: list[Tree]) -> str:
        if not open_:
            return "a value is missing"
        sign = "[" if open_[-1].list is not None else "{"
        return f"the `{sign}` of line {open_[-1].line} is not closed"


def _whole(text: str) -> str:
    """Without halves of pairs of UTF-16, which no file or terminal takes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _Mark:
    """A place counted from 0, as PyYAML's."""

    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column
