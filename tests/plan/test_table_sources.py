"""Facts in tables say where they come from: each row, or the table for all of its rows."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "selfhost"
TABLES = sorted(
    path for room in ("engines", "plan", "doctor", "visibility", "hosts") for path in (PACKAGE / room).rglob("*.toml")
)


def rows(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for value in table.values():
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict) and "source" in value:
            yield value  # one source for all that the table holds
        elif isinstance(value, dict) and isinstance(value.get("rows"), list):
            yield from value["rows"]
        elif isinstance(value, dict) and not all(isinstance(inner, str) for inner in value.values()):
            yield from value.values()


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_every_fact_has_a_source(path: Path) -> None:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    found = list(rows(table))
    assert found
    if "source" not in table:
        assert [row for row in found if not row.get("source")] == []


def test_lines_of_every_engine_have_the_source_of_that_engine() -> None:
    table = tomllib.loads((PACKAGE / "engines" / "phases.toml").read_text(encoding="utf-8"))
    assert {row["engine"] for row in table["line"]} == set(table["source"])
