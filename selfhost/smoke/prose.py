"""What SM110 asks of a model that was made for prose: our own English texts and plain questions."""

import random
from dataclasses import dataclass

from selfhost.core.table import read_table


@dataclass(frozen=True, slots=True)
class Pair:
    """A text that the model should find likely, and the same words in another order."""

    text: str
    shuffled: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the lower-case words of which one must be in the answer."""

    ask: str
    expect: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Texts and questions that a model is judged by."""

    pairs: tuple[Pair, ...]
    questions: tuple[Question, ...]


def shuffle(text: str, *, seed: int) -> str:
    """The same words in an order fixed by `seed`."""
    words = text.split()
    random.Random(seed).shuffle(words)  # noqa: S311 - an order, not a secret
    return " ".join(words)


def plain() -> Material:
    """Our own English material."""
    table = read_table("selfhost.smoke", "prose.toml")
    return Material(
        pairs=tuple(Pair(text, shuffle(text, seed=seed)) for seed, text in enumerate(table["passages"])),
        questions=tuple(Question(row["ask"], tuple(row["expect"])) for row in table["questions"]),
    )
