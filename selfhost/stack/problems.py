"""What is wrong with one file, all of it at once and in the order of its lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.redact import mask
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Spot

MOST_SHOWN: Final = 30
_WIDEST: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong; `fix` as in an error: a sentence, then lines to paste."""

    spot: Spot
    what: str
    id: str
    why: str = ""
    fix: Sequence[str] = ()


@dataclass(slots=True)
class Problems:
    """Collects them; `text` is that of the file, for the line that is shown."""

    path: str
    text: str
    found: list[Problem] = field(default_factory=list)

    def add(self, spot: Spot, what: str, *, id: str, why: str = "", fix: Sequence[str] = ()) -> None:
        self.found.append(Problem(spot=spot, what=what, id=id, why=why, fix=fix))

    def stop(self) -> None:
        """Raise InputError when there is any."""
        unlike = {(one.spot.line, one.what): one for one in self.found}
        ordered = sorted(unlike.values(), key=lambda one: (one.spot.line, one.spot.column))
        if len(ordered) == 1:
            raise self._one(ordered[0])
        if ordered:
            raise self._several(ordered)

    def _one(self, problem: Problem) -> InputError:
        return InputError(
            problem.what,
            why=problem.why,
            evidence=self._line(problem.spot.line),
            fix=problem.fix,
            id=problem.id,
            place=self._place(problem),
        )

    def _several(self, ordered: Sequence[Problem]) -> InputError:
        shown = ordered[:MOST_SHOWN]
        more = len(ordered) - len(shown)
        return InputError(
            f"{len(ordered)} problems from this line on",
            why="Nothing of it is used until all are mended; they stand in the order of the lines.",
            fix=(*(_in_short(one) for one in shown), *((f"and {more} more",) if more else ())),
            id="CF018",
            place=self._place(shown[0]),
        )

    def _place(self, problem: Problem) -> Place:
        return Place(path=self.path, line=problem.spot.line, column=problem.spot.column)

    def _line(self, number: int) -> str:
        lines = self.text.split("\n", number)
        line = mask(lines[number - 1].rstrip("\r")) if 0 < number <= len(lines) else ""
        return f"{number} | {line[:_WIDEST]}" if line.strip() else ""


def _in_short(problem: Problem) -> str:
    """`line 7 [CF002]: unknown key … – perhaps …`, with the lines to paste below."""
    first = problem.fix[0] if problem.fix else ""
    said, newline, pasted = first.partition("\n")
    return f"line {problem.spot.line} [{problem.id}]: {problem.what}" + (f" – {said}{newline}{pasted}" if said else "")
