"""What SM110 asks: plain prose and questions of our own, or the probes that a model brings beside its config."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.errors import InputError
from selfhost.core.table import read_table

PROBES_FILE = "selfhost-probes.json"
PROBES_SCHEMA = "selfhost.probes/1"


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
    """`own` is true for probes that the model brought."""

    pairs: tuple[Pair, ...]
    questions: tuple[Question, ...]
    own: bool = False


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


def brought(model_dir: str) -> Material | None:
    """The probes beside the model's config, or None when there are none. Raises InputError for any other file there."""
    path = Path(model_dir) / PROBES_FILE
    if not model_dir or not path.is_file():
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return _material(body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not a file of probes",
            why=f"Expected schema {PROBES_SCHEMA} with `likelihood` (text, shuffled) and `questions` (ask, expect).",
            evidence=str(error),
            fix=("correct the file, or remove it: without it the model is judged by plain English",),
            id="CF060",
        ) from None


def _material(body: Any) -> Material:
    if body["schema"] != PROBES_SCHEMA:
        raise ValueError(f"schema is {body['schema']!r}")
    pairs = tuple(Pair(row["text"], row.get("shuffled") or "") for row in body.get("likelihood", ()))
    pairs = tuple(
        pair if pair.shuffled else Pair(pair.text, shuffle(pair.text, seed=seed)) for seed, pair in enumerate(pairs)
    )
    questions = tuple(Question(row["ask"], _expected(row["expect"])) for row in body.get("questions", ()))
    if not pairs and not questions:
        raise ValueError("it holds neither likelihood nor questions")
    return Material(pairs=pairs, questions=questions, own=True)


def _expected(value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else list(value)
    return tuple(str(word).lower() for word in words)
