"""The same model in another precision: which repository holds it."""

from dataclasses import dataclass
from functools import cache

from selfhost.core.table import read_table
from selfhost.models.catalog import by_alias, by_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One row of checkpoints.toml, whose head explains each column."""

    of: str
    precision: str
    id: str
    scheme: str
    reach: str = ""
    source: str


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    return tuple(Checkpoint(**raw) for raw in read_table("selfhost.models", "checkpoints.toml")["checkpoint"])


def published(model_id: str, precision: str) -> Checkpoint | None:
    """The checkpoint of a model (alias or hub id) in a precision; None when none is known.

    `precision` as a person types it: a family (`fp8`, `int4`) or a scheme (`awq`). The model's own is itself.
    """
    row = by_alias(model_id) or by_id(model_id)
    if row is not None and row.native == precision:
        return Checkpoint(of=row.id, precision=precision, id=row.id, scheme=precision, source=row.source)
    name = row.id if row else model_id
    return next((one for one in checkpoints() if one.of == name and precision in (one.precision, one.scheme)), None)


def precisions_of(model_id: str) -> tuple[str, ...]:
    """In which precisions a model is published, its own first."""
    row = by_alias(model_id) or by_id(model_id)
    name = row.id if row else model_id
    found = [one.precision for one in checkpoints() if one.of == name]
    return tuple(dict.fromkeys(([row.native] if row else []) + found))


def named(repo_id: str) -> Checkpoint | None:
    """The row of a repository that is itself a quantized copy."""
    return next((one for one in checkpoints() if one.id.lower() == repo_id.lower()), None)
