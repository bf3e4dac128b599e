"""The same model in other precisions."""

import re

import pytest

from selfhost.models import catalog
from selfhost.models.checkpoints import Checkpoint, checkpoints, named, precisions_of, published

PRECISIONS = {"fp8", "int8", "int4", "nvfp4", "mxfp4"}


@pytest.mark.parametrize("row", checkpoints(), ids=lambda row: row.id)
def test_every_row_belongs_to_a_model_of_the_catalog_and_names_its_source(row: Checkpoint) -> None:
    assert catalog.by_id(row.of) is not None
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", row.id)
    assert row.precision in PRECISIONS
    assert row.reach in ("", "block", "per channel", "per tensor")
    assert (row.scheme == "fp8_block") == (row.reach == "block")
    assert row.source.startswith(("https://", "SGLang 0.5.23: "))


def test_the_table_is_long_enough_and_holds_nothing_twice() -> None:
    rows = checkpoints()
    assert len({row.of for row in rows}) >= 40
    assert len({(row.of, row.precision) for row in rows}) == len(rows)
    assert len({row.id.lower() for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("model", "precision", "expected"),
    [
        ("qwen3-4b", "fp8", "Qwen/Qwen3-4B-FP8"),
        ("Qwen/Qwen3-32B", "int4", "Qwen/Qwen3-32B-AWQ"),
        ("qwen3-32b", "awq", "Qwen/Qwen3-32B-AWQ"),
        ("llama-3.3-70b", "nvfp4", "nvidia/Llama-3.3-70B-Instruct-NVFP4"),
        ("qwen3-4b", "bf16", "Qwen/Qwen3-4B"),
        ("gpt-oss-20b", "mxfp4", "openai/gpt-oss-20b"),
    ],
)
def test_a_model_and_a_precision_name_a_repository(model: str, precision: str, expected: str) -> None:
    found = published(model, precision)
    assert found is not None
    assert found.id == expected


def test_what_nobody_published_is_none() -> None:
    assert published("qwen3-4b", "mxfp4") is None
    assert published("acme/unheard", "fp8") is None
    assert precisions_of("qwen3-4b") == ("bf16", "fp8", "int4")
    assert precisions_of("acme/unheard") == ()


def test_a_copy_is_recognised_by_its_id() -> None:
    found = named("qwen/qwen3-4b-fp8")
    assert found is not None
    assert found.of == "Qwen/Qwen3-4B"
    assert named("Qwen/Qwen3-4B") is None
