"""Numbers of a config.json, read with suspicion: absent is 0, nonsense is refused by its name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place

LIMIT = 10_000_000
"""No width, count or vocabulary of a published model comes near; one zero too many does."""
_SHOWN = 40
"""Characters of a wrong value that an error repeats."""


@dataclass(frozen=True, slots=True)
class Fields:
    """One level of a config.json. `path` is the file, for the words of an error."""

    raw: Mapping[str, Any]
    path: Path

    @property
    def model_type(self) -> str:
        named = self.raw.get("model_type")
        return named if isinstance(named, str) else ""

    def number(self, *names: str, limit: int = LIMIT) -> int:
        """The first of `names` that is given (transformers spells one thing in several ways); 0 when none is.

        Of a list, one value for each layer, the largest. Raises InputError for what is no count.
        """
        for name in names:
            value = self.raw.get(name)
            if value is None or value is False:
                continue
            return max(
                (self._count(name, one, limit) for one in (value if isinstance(value, list) else [value])), default=0
            )
        return 0

    def words(self, *names: str) -> list[str]:
        """The first of `names` that is a list of texts; empty when none is."""
        for name in names:
            value = self.raw.get(name)
            if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
                return value
        return []

    def numbers(self, *names: str) -> list[int] | None:
        """The first of `names` that is a list of whole numbers or switches; None when none is."""
        for name in names:
            value = self.raw.get(name)
            if isinstance(value, list) and all(isinstance(one, int) for one in value):
                return [int(one) for one in value]
        return None

    def inner(self, name: str) -> "Fields":
        """A config inside this one; empty when there is none."""
        value = self.raw.get(name)
        return Fields(value if isinstance(value, dict) else {}, self.path)

    def _count(self, name: str, value: object, limit: int) -> int:
        if value is None:
            return 0
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.nonsense(f"{name} is {_short(json.dumps(value))}", "It must be a whole number.")
        if not 0 <= value <= limit:
            raise self.nonsense(f"{name} is {_short(f'{value:,}')}", f"It must lie between 0 and {limit:,}.")
        return value

    def nonsense(self, what: str, why: str) -> InputError:
        """The error for a config that describes no network."""
        return InputError(
            f"{self.path} describes no network: {what}",
            why=why,
            fix=("compare it with the config.json on the model's page, or fetch it again",),
            id="MD031",
            place=Place(path=str(self.path)),
        )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
