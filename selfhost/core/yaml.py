"""YAML text → its documents with the line and column of every value, built from the parser's events: no recursion."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from selfhost.core.jsonc import tree_of_json
from selfhost.core.tree import Tree
from selfhost.core.yaml_faults import broken, not_text, too_deep, too_much, twice, unknown_alias, wrong

DEEPEST: Final = 200
"""Levels; a Kubernetes schema has 60."""
MOST_REPEATED: Final = 500_000
"""Values that aliases may add; a file made to exhaust its reader has billions."""
_USUAL: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_LITERAL: Final = ("|", ">")


def documents(text: str, *, path: str) -> tuple[Tree, ...]:
    """Every document that says something. Raises InputError, with its place, for what is no YAML."""
    text = text.removeprefix("\ufeff")
    as_json = tree_of_json(text, path=path)
    if as_json is not None:
        return (as_json,)
    return tuple(tree for tree in _Builder(text, path).documents() if not (tree.is_null and not tree.tag))


@dataclass(slots=True)
class _Open:
    """A map or list that is not yet closed; `key` is one that waits for its value."""

    tree: Tree
    anchor: str | None
    key: Tree | None = None
    merged: list[Tree] = field(default_factory=list)
    size: int = 1


class _Builder:
    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.anchors: dict[str, tuple[Tree, int]] = {}
        self.open: list[_Open] = []
        self.root: Tree | None = None
        self.repeated = 0

    def documents(self) -> Iterator[Tree]:
        for event in self._events():
            name = type(event).__name__
            if name == "DocumentEndEvent":
                if self.root is not None:
                    yield self.root
                self.root, self.anchors, self.open = None, {}, []
            elif name in _TAKERS:
                _TAKERS[name](self, event)

    def _events(self) -> Iterator[Any]:
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            parser = loader(self.text)
            while parser.check_event():
                yield parser.get_event()
        except yaml.MarkedYAMLError as error:
            raise broken(error, self.text, self.path) from None
        except (yaml.reader.ReaderError, UnicodeError) as error:
            raise not_text(error, self.text, self.path) from None
        except RecursionError:
            raise too_deep(self.path, None) from None

    def scalar(self, event: Any) -> None:
        mark, end = event.start_mark, event.end_mark
        tag = event.tag or ""
        block = event.style in _LITERAL
        tree = Tree(
            line=mark.line + 1,
            column=mark.column + 1,
            path=self.path,
            text=event.value,
            quoted=bool(event.style) or (bool(tag) and not _is_typed(tag)),
            block=block,
            tag="" if tag.startswith(_USUAL) else tag,
            end_line=end.line + (not block or end.column > 0),
        )
        if event.anchor:
            self.anchors[event.anchor] = (tree, 1)
        self._put(tree, 1)

    def begin(self, event: Any) -> None:
        mark = event.start_mark
        if len(self.open) >= DEEPEST:
            raise too_deep(self.path, mark)
        is_map = type(event).__name__ == "MappingStartEvent"
        tag = event.tag or ""
        tree = Tree(
            line=mark.line + 1,
            column=mark.column + 1,
            path=self.path,
            tag="" if tag.startswith(_USUAL) else tag,
            map={} if is_map else None,
            list=None if is_map else [],
        )
        if event.anchor:
            self.anchors[event.anchor] = (tree, -1)
        self.open.append(_Open(tree, event.anchor))

    def end(self, event: Any) -> None:
        del event
        done = self.open.pop()
        if done.tree.map is not None:
            _merge(done)
        if done.anchor:
            self.anchors[done.anchor] = (done.tree, done.size)
        self._put(done.tree, done.size)

    def alias(self, event: Any) -> None:
        found = self.anchors.get(event.anchor)
        if found is None:
            raise unknown_alias(event, self.anchors, self.text, self.path)
        tree, size = found
        self.repeated += size
        if size < 0 or self.repeated > MOST_REPEATED:
            raise too_much(event, self.path, itself=size < 0)
        self._put(tree, size, at=event.start_mark)

    def _put(self, tree: Tree, size: int, at: Any = None) -> None:
        if not self.open:
            self.root = tree
            return
        parent = self.open[-1]
        parent.size += size
        if parent.tree.list is not None:
            parent.tree.list.append(tree)
        elif parent.key is None:
            parent.key = self._key(tree)
        else:
            self._value(parent, parent.key, tree, at)
            parent.key = None

    def _key(self, tree: Tree) -> Tree:
        if not tree.is_scalar:
            raise wrong(self.text, self.path, tree, "a list or a map stands where a key belongs")
        return tree

    def _value(self, parent: _Open, key: Tree, tree: Tree, at: Any) -> None:
        if key.text == _MERGE and not key.quoted:
            if parent.merged:
                raise twice(self.path, key, parent.merged[0], _MERGE)
            parent.merged = self._sources(tree, at)
            return
        kept = parent.tree.map
        if kept is None:
            return
        if key.text in kept:
            line, column, _ = parent.tree.keys[key.text]
            raise twice(self.path, key, Tree(line, column), key.text)
        kept[key.text] = tree
        parent.tree.keys[key.text] = (key.line, key.column, self.path)

    def _sources(self, tree: Tree, at: Any) -> list[Tree]:
        """What `<<` brings in: a map or several, of which the first wins."""
        sources = tree.list if tree.list is not None else [tree]
        for source in sources:
            if source.map is None:
                place = tree if at is None else Tree(at.line + 1, at.column + 1)
                raise wrong(self.text, self.path, place, "`<<` merges a map, and this is none")
        return sources


def _merge(done: _Open) -> None:
    """Keys of its own win over merged ones, wherever `<<` stands."""
    tree = done.tree
    if tree.map is None:
        return
    for source in done.merged:
        for key, value in source.items():
            if key not in tree.map:
                tree.map[key] = value
                tree.keys[key] = source.keys[key]


def _is_typed(tag: str) -> bool:
    return tag.startswith(_USUAL) and tag != f"{_USUAL}str"


_TAKERS: Final[dict[str, Callable[[_Builder, Any], None]]] = {
    "ScalarEvent": _Builder.scalar,
    "AliasEvent": _Builder.alias,
    "MappingStartEvent": _Builder.begin,
    "SequenceStartEvent": _Builder.begin,
    "MappingEndEvent": _Builder.end,
    "SequenceEndEvent": _Builder.end,
}
