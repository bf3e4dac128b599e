"""The catalog's rows and how they are found."""

import re

import pytest

from selfhost.models import catalog
from selfhost.models.catalog import CatalogRow, by_alias, nearest, relative_of, rows
from selfhost.shapes.host import Known, Unknown

ASKED_FOR = [
    "qwen3-0.6b",
    "qwen3-4b",
    "qwen3-8b",
    "qwen3-14b",
    "qwen3-32b",
    "qwen3-30b-a3b",
    "qwen3-coder-30b-a3b",
    "qwen3.5-4b",
    "qwen2.5-0.5b",
    "qwen2.5-7b",
    "gpt-oss-20b",
    "gpt-oss-120b",
    "gemma-3-4b",
    "gemma-3-12b",
    "gemma-3-27b",
    "gemma-2-2b",
    "gemma-4-e4b",
    "llama-3.1-8b",
    "llama-3.3-70b",
    "mistral-7b",
    "mistral-small-3.2-24b",
    "phi-4",
    "phi-4-mini",
    "smollm3-3b",
    "granite-3.3-8b",
    "smollm2-135m",
]


@pytest.mark.parametrize("alias", ASKED_FOR)
def test_the_aliases_one_would_try_first_exist(alias: str) -> None:
    assert by_alias(alias) is not None


def test_no_alias_and_no_id_stands_for_two_models() -> None:
    aliases = [row.alias for row in rows() if row.alias]
    ids = [row.id.lower() for row in rows()]
    assert len(set(aliases)) == len(aliases)
    assert len(set(ids)) == len(ids)


def test_the_table_is_as_long_as_promised() -> None:
    assert len([row for row in rows() if row.alias]) >= 40


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_every_row_is_complete(row: CatalogRow) -> None:
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", row.id)
    assert re.search(row.match, row.id, re.IGNORECASE)
    assert row.source.startswith("https://")
    assert row.licence
    assert 0 < row.active_b <= row.params_b


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_the_layers_of_a_row_add_up(row: CatalogRow) -> None:
    shape = row.geometry
    counted = shape.full_layers + shape.sliding_layers + shape.linear_layers
    assert 0 < counted <= shape.layers
    # the rest owns no cache: MLP and expert blocks of Nemotron-H, borrowing layers of Gemma E models
    assert counted == shape.layers or "NemotronH" in row.architecture or shape.layer_embeddings
    assert bool(shape.linear_layers) == (shape.state is not None)
    assert bool(shape.sliding_layers) == bool(shape.window)
    assert shape.exact or shape.note


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_the_heads_and_experts_of_a_row_are_possible(row: CatalogRow) -> None:
    shape = row.geometry
    assert shape.heads % shape.kv_heads == 0
    assert bool(shape.full_kv_heads) == bool(shape.full_head_dim)
    if shape.latent:
        assert (shape.kv_heads, shape.head_dim) == (1, shape.latent.rank + shape.latent.rope)
    if shape.experts:
        assert shape.experts.top_k <= shape.experts.count
        assert 0 < shape.experts.layers <= shape.layers
        assert row.active_b < row.params_b
    assert shape.vision != 1  # the table counts them


def test_no_revision_stands_in_the_table_that_was_not_read() -> None:
    assert [row.id for row in rows() if row.revision] == []


def test_weights_of_a_bf16_model_are_two_bytes_a_parameter_and_marked_an_estimate() -> None:
    row = by_alias("qwen3-0.6b")
    assert row is not None
    assert isinstance(row.weights_bytes, Known)
    assert row.weights_bytes.value == 1_192_000_000  # 0.596 billion, two bytes each
    assert "estimated" in row.weights_bytes.how


def test_mxfp4_weights_count_their_scales() -> None:
    row = by_alias("gpt-oss-20b")
    assert row is not None
    assert isinstance(row.weights_bytes, Known)
    # 19.11e9 · 17/32 bytes in MXFP4 + 1.805e9 · 2 bytes; the published safetensors files are 13.76 GB
    assert row.weights_bytes.value == pytest.approx(13.76e9, rel=0.005)


def test_a_precision_without_a_known_width_gives_no_byte_count() -> None:
    row = by_alias("qwen3-4b")
    assert row is not None
    other = catalog.CatalogRow(**{name: getattr(row, name) for name in row.__slots__} | {"native": "w4a8"})
    assert isinstance(other.weights_bytes, Unknown)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("qwen3-4", "qwen3-4b"),
        ("qwn3-8b", "qwen3-8b"),
        ("gpt-os-20b", "gpt-oss-20b"),
        ("Qwen/Qwen3-4", "Qwen/Qwen3-4B"),
        ("qwen/qwen3-4b-", "Qwen/Qwen3-4B"),
        ("Meta/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
    ],
)
def test_a_misspelled_name_finds_its_neighbour(typed: str, expected: str) -> None:
    assert expected in nearest(typed)
    assert len(nearest(typed)) <= 3


def test_nonsense_has_no_neighbour() -> None:
    assert nearest("zzzzzzzz") == ()


def test_a_quantized_copy_lends_the_geometry_of_its_family() -> None:
    row = relative_of("someone/Qwen3-4B-AWQ")
    assert row is not None
    assert row.id == "Qwen/Qwen3-4B"
    assert relative_of("someone/else-entirely") is None
