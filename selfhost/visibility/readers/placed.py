"""A container's description collected from a tree, whose values stand in this file or that."""

from dataclasses import dataclass

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.workload import EnvSource, Spot
from selfhost.visibility.readers.draft import Draft
from selfhost.visibility.readers.run_options import Option
from selfhost.visibility.readers.words import Word


@dataclass(slots=True, kw_only=True)
class Placed(Draft):
    """`own` is the path of the text itself; a spot names its file only where it is another one."""

    own: str = ""
    place: str = ""

    def mark(self, key: str, word: Word) -> None:
        self.at[key] = Spot(line=word.line, column=word.column, path="" if self.place == self.own else self.place)

    def mark_tree(self, key: str, tree: Tree) -> None:
        self.mark_spot(key, tree.spot)

    def mark_spot(self, key: str, spot: Spot) -> None:
        self.at[key] = Spot(line=spot.line, column=spot.column, path="" if spot.path == self.own else spot.path)

    def option(self, name: str, tree: Tree, text: str | None = None) -> None:
        """A value in the same words as an option of `docker run`."""
        if not tree.is_scalar:
            return
        self.place = tree.path
        said = as_written(tree) if text is None else text
        word = Word(said, tree.line, dynamic=bool(tree.unknown), column=tree.column)
        self.take(Option(name=name, value=word, word=word))

    def options(self, name: str, tree: Tree) -> None:
        """Each element of a list, or a scalar that stands for a list of one."""
        for element in tree.elements() if tree.list is not None else (tree,):
            if not element.is_null:
                self.option(name, element)

    def variable_of(self, name: str, tree: Tree, source: EnvSource | None = None) -> None:
        """A variable whose value is certain, passed through under its own name, or known only at run time."""
        spot = Spot(line=tree.line, column=tree.column, path="" if tree.path == self.own else tree.path)
        if tree.unknown:
            itself = tree.text == f"${{{name}}}"
            self.variable(name, None, spot, EnvSource.PASSED_THROUGH if itself else EnvSource.REFERENCE)
        else:
            self.variable(name, as_written(tree), spot, source)
