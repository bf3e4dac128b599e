"""The benchmark over public rows: its bars, its last line, and rows of odd form. Counts of evidence, too."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.table import read_table
from selfhost.hosts.cards import named
from selfhost.plan.memory.releases import numbers, release

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "tests" / "cases" / "engine-memory-logs.jsonl"


def run(path: Path, *flags: str) -> str:
    argv = [sys.executable, str(ROOT / "benchmarks" / "planner_accuracy.py"), "--rows", str(path), *flags]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def as_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(path, "--json").splitlines()[-1])
    return found


def test_the_bars_hold_on_the_public_rows() -> None:
    found = as_json(ROWS)
    assert found["rows"] == 112
    assert found["covered"] / found["rows"] >= 0.7
    assert found["geometry_exact_share"] >= 0.95
    assert found["tokens_median_pct"] <= 3
    assert found["tokens_p90_pct"] <= 12
    assert found["verdict_right_share"] >= 0.97
    assert found["too_close_share"] <= 0.15


def test_the_table_names_the_worst_rows_and_why_others_do_not_count() -> None:
    said = run(ROWS)
    assert "worst rows" in said
    assert "uncovered:" in said
    assert "MuseGlimmer" in said


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[1, 2]",
        "{}",
        '{"id": "a", "engine": "vllm", "model": null, "observed": null}',
        '{"id": "b", "engine": "vllm", "model": "Qwen/Qwen3-8B", "tp": "two", "pp": 0, "observed": {"oom": "no"}}',
        '{"id": "c", "engine": "vllm", "gpu": 5, "gpu_mem_gib": -3, "model": "Qwen/Qwen3-8B", "tp": 3, "observed": {}}',
        '{"id": "f", "engine": "vllm", "model": "Qwen/Qwen3-8B", "max_model_len": 1e30, "observed": {"kv_tokens": -5}}',
        '{"id": "g", "engine": "vllm", "model": "Qwen/Qwen3-8B", "gpu_mem_gib": 8, "observed": {"weights_gib": 1e9}}',
        '{"id": "d", "engine": "sglang", "engine_version": null, "model": "google/gemma-4-E2B-it", "observed": {}}',
        '{"id": "e", "engine": "llama.cpp", "model": "Qwen/Qwen3-8B"}',
    ],
)
def test_a_row_of_odd_form_is_at_most_uncovered(tmp_path: Path, line: str) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(line + "\n\n", encoding="utf-8")
    found = as_json(rows)
    assert (found["rows"], found["covered"]) in ((1, 0), (1, 1))
    assert "worst rows" in run(rows)


def test_no_row_at_all_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("", encoding="utf-8")
    assert as_json(tmp_path / "none.jsonl")["tokens_median_pct"] is None


def test_evidence_is_counted_and_no_figure_rests_on_one_run() -> None:
    lines = read_table("selfhost.plan.memory", "evidence.toml")["line"]
    seen: Counter[tuple[str, str, str]] = Counter()
    for text in ROWS.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        card = named(row["gpu"] or "")
        version = release(row["engine"], row["engine_version"])
        for line in lines:
            of_line = card and (line["engine"], line["arch"]) == (row["engine"], card.arch)
            if of_line and numbers(line["since"]) <= version < numbers(line["until"]):
                seen[line["engine"], line["arch"], line["since"]] += 1
    assert {(line["engine"], line["arch"], line["since"]): line["runs"] for line in lines} == seen
    assert [row for row in _fitted(read_table("selfhost.plan.memory", "memory.toml")) if row["runs"] < 2] == []


def _fitted(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [value] if "runs" in value else []
        return own + [row for inner in value.values() for row in _fitted(inner)]
    return [row for inner in value for row in _fitted(inner)] if isinstance(value, list) else []
