"""The probes that a model brings beside its config, for one that was not made for prose."""

import json
from pathlib import Path
from typing import Any

from selfhost.core.errors import InputError
from selfhost.smoke.prose import Material, Pair, Question, shuffle

PROBES_FILE = "selfhost-probes.json"
PROBES_SCHEMA = "selfhost.probes/1"


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
    return Material(pairs=pairs, questions=questions)


def _expected(value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else list(value)
    return tuple(str(word).lower() for word in words)
