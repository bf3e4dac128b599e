"""What a check is, and what it may answer: a function `(Probe, Capability) -> Verdict` with this mark."""

from collections.abc import Callable
from dataclasses import dataclass

from selfhost.core.marks import Marked, mark
from selfhost.shapes.finding import Finding

KIND = "smoke"
GROUPS = ("reach", "exposure", "answers", "stream", "reasoning", "load", "client", "context")
"""The order in which groups run and are shown. The context's end comes last: that check can end a weak server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`needs` are ids whose failure makes this check pointless; `abilities` are what the server must offer.

    `{model}` in the title stands for the model's name. `budget_s` is what the whole check may take on a machine that
    answers a short request within half a second; slower ones get more in proportion.
    """

    id: str
    title: str
    group: str
    needs: tuple[str, ...] = ()
    abilities: tuple[str, ...] = ()
    budget_s: float = 30.0


def check(
    id: str,
    title: str,
    *,
    group: str,
    needs: tuple[str, ...] = (),
    abilities: tuple[str, ...] = (),
    budget_s: float = 30.0,
) -> Callable[[Marked], Marked]:
    """Mark a function as the check `id`."""
    spec = Spec(id=id, title=title, group=group, needs=needs, abilities=abilities, budget_s=budget_s)
    return mark(KIND, spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """It holds. `note` says what was seen; `finding` is information worth showing all the same."""

    note: str = ""
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It does not hold. The runner turns this into an error finding under the check's id."""

    what: str
    why: str = ""
    fix: tuple[str, ...] = ()
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """It does not apply here."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """It was tried and cannot tell; never a pass."""

    reason: str
    finding: Finding | None = None


Verdict = Passed | Failed | Skipped | Undecided
