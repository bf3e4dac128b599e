"""`selfhost fit`, `models --fits` and `plan --host` as typed: verdicts, exit codes, JSON, and what is refused."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNAPSHOTS = ROOT / "tests" / "snapshots"


@pytest.fixture
def selfhost(tmp_path):
    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "COLUMNS": "120"}
        return subprocess.run(
            [sys.executable, "-m", "selfhost", *argv], capture_output=True, text=True, timeout=60, cwd=ROOT, env=env
        )

    return run


def test_a_model_that_fits_says_how_much_room_there_is(selfhost):
    done = selfhost("fit", "qwen3-4b", "--gpu", "RTX 4090")
    assert done.returncode == 0, done.stderr
    assert "qwen3-4b on RTX 4090" in done.stdout
    assert "144.0 KiB raw" in done.stdout  # 36 layers, 2 of keys and values, 8 heads, 128 wide, 2 bytes
    assert done.stdout.splitlines()[-1].startswith("fits: ")


def test_a_rate_never_stands_without_its_axes(selfhost):
    lines = selfhost("fit", "qwen3-14b", "--gpu", "L40S", "--claim", "40tok/s").stdout.splitlines()
    rates = [line for line in lines if "tok/s" in line]
    assert rates
    for line in rates:
        assert "C=" in line
        assert "estimated" in line or "would read" in line


def test_what_does_not_fit_ends_with_1_and_its_ways_out_can_be_pasted(selfhost):
    done = selfhost("fit", "qwen3-32b", "--gpu", "RTX 4090", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["schema"], said["ok"], said["verdict"]) == ("selfhost.fit/1", False, "does not fit")
    assert said["ways_out"]
    for way in said["ways_out"]:
        again = selfhost(*shlex.split(way["command"])[1:], "--json")
        assert again.returncode == 0, (way, again.stderr)
        assert json.loads(again.stdout)["context"] == way["context"]


def test_a_claim_above_the_data_sheet_is_not_possible(selfhost):
    done = selfhost("fit", "qwen3-14b", "--gpu", "L40S", "--precision", "bf16", "--claim", "90", "--json")
    claim = json.loads(done.stdout)["claim"]
    assert claim["possible"] is False
    assert claim["implied"] > 864e9


@pytest.mark.parametrize(
    ("words", "id"),
    [
        (("--gpu", "RTX 4091"), "CF031"),
        (("--gpu", "L4", "--claim", "fast"), "CF032"),
        (("--count", "2"), "CF033"),
        (("--gpu", "L4", "--host", "tests/snapshots/h100.json"), "CF034"),
        (("--gpu", "L4", "--count", "65"), "CF035"),
        (("--host", "0.0.0.0"), "CF012"),
    ],
)
def test_contradictions_are_wrong_input_with_their_id(selfhost, words, id):
    done = selfhost("fit", "qwen3-4b", *words)
    assert done.returncode == 2, done.stdout
    assert f"error[{id}]" in done.stderr


def test_a_card_that_no_engine_has_code_for_is_no_cpu_plan(selfhost):
    done = selfhost("fit", "qwen3-4b", "--gpu", "V100")
    assert done.returncode == 4
    assert "llama.cpp" in done.stderr


def test_the_catalog_is_judged_for_a_card_at_once(selfhost):
    done = selfhost("models", "--fits", "--gpu", "RTX 3060", "--json")
    assert done.returncode == 0, done.stderr
    found = {row["alias"]: row["verdict"] for row in json.loads(done.stdout)["models"]}
    assert len(found) >= 40
    assert found["qwen3-4b"] == "fits"
    assert found["qwen3-32b"] == "does not fit"


def test_a_plan_for_another_machine_is_started_there(selfhost):
    done = selfhost("plan", "qwen3-4b", "--host", "tests/snapshots/rtx4090.json")
    assert done.returncode == 0, done.stderr
    assert "NVIDIA GeForce RTX 4090" in done.stdout
    assert "on that machine:" in done.stderr
    other = selfhost("up", "qwen3-4b", "--host", "tests/snapshots/rtx4090.json")
    assert other.returncode == 2
    assert re.search(r"selfhost plan qwen3-4b --host", other.stderr)


@pytest.mark.parametrize(
    ("words", "id"),
    [
        (("--engine", ""), "CF015"),
        (("--precision", " "), "CF015"),
        (("--kv-cache", ""), "CF015"),
        (("--host", ""), "CF015"),
        (("--gpu", "L4", "--claim", ""), "CF032"),
        (("--gpu", "L4", "--engine", "vllm@"), "PL061"),
        (("--gpu", "L4", "--gpu-memory", "nan"), "CF035"),
    ],
)
def test_a_variable_that_was_not_set_chooses_nothing(selfhost, words, id):
    done = selfhost("fit", "qwen3-4b", *words)
    assert done.returncode == 2, done.stdout
    assert f"error[{id}]" in done.stderr
    assert "None" not in done.stderr


def proposed(text: str) -> list[list[str]]:
    """The commands that an output proposes, as words behind `selfhost`."""
    return [shlex.split(line)[1:] for line in text.splitlines() if re.match(r"\s+selfhost \w", line)]


@pytest.mark.parametrize(
    "typed",
    [
        ("fit", "qwen3-4b", "--gpu", "L40S", "--count", "2", "--context", "50000"),
        ("fit", "qwen3-4b", "--gpu", "L40S", "--context", "0"),
        ("fit", "qwen3-4b", "--gpu", "L40S", "--engine", "vllm@0.1.0"),
        ("fit", "qwen3-4b", "--gpu", "V100"),
        ("plan", "qwen3-4b", "--host", "tests/snapshots/l40s.json", "--kv-cache", "fp8_ds_mla"),
    ],
)
def test_a_refusal_proposes_the_same_command_about_the_same_machine(selfhost, typed):
    refused = selfhost(*typed)
    assert refused.returncode in (2, 4)
    commands = proposed(refused.stderr)
    assert commands
    for words in commands:
        assert words[0] == typed[0], words  # never `up`: nobody asked for an engine on this machine
        assert typed[2] in words or "cpu" in words
        assert selfhost(*words).returncode == 0, words


def test_the_arithmetic_of_a_plan_can_be_asked_for_whatever_was_asked(selfhost):
    done = selfhost(
        "plan", "qwen3-4b", "--host", "tests/snapshots/l40s.json", "--engine", "sglang", "--reasoning", "off",
        "--name", "mine", "--port", "8010",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert selfhost(*proposed(done.stderr)[-1]).returncode == 0


def test_what_is_missing_is_not_subtracted_as_if_it_were_a_cache(selfhost):
    done = selfhost("fit", "llama-3.3-70b", "--gpu", "RTX 4090", "--gpu-memory", "4", "--precision", "bf16")
    line = next(line for line in done.stdout.splitlines() if line.startswith("  memory"))
    assert line.endswith("before any KV cache")
    assert " - " not in line


def test_a_newer_engine_is_an_unverified_version(selfhost):
    assert "unverified version" in selfhost("fit", "qwen3-4b", "--gpu", "L4", "--engine", "vllm@0.99.0").stdout
    assert "unverified" not in selfhost("fit", "qwen3-4b", "--gpu", "L4", "--engine", "vllm@0.33.0").stdout


def test_a_budget_is_not_judged_by_the_context_of_a_model_that_does_not_fit(selfhost):
    host = ("--host", "tests/snapshots/eight-h100.json")
    done = selfhost("plan", "deepseek-r1", *host, "--reasoning", "budget=1024")
    assert done.returncode == 1, done.stderr
    assert selfhost("plan", "deepseek-r1", *host, "--reasoning", "budget=1024", "--context", "1024").returncode == 2


def test_a_number_of_cards_that_no_model_is_spread_over_is_said_so(selfhost):
    done = selfhost("fit", "qwen3-4b", "--gpu", "RTX 4090", "--count", "3")
    assert done.returncode == 2
    assert "a model is not spread over 3 cards" in done.stderr


def test_a_count_without_a_card_is_not_passed_over(selfhost):
    assert selfhost("models", "--count", "2").returncode == 2


def test_a_shape_that_is_unknown_has_no_longest_request(selfhost, tmp_path):
    config = {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 512}
    header = json.dumps({"w": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}}).encode()
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    done = selfhost("fit", str(tmp_path), "--gpu", "L4")
    assert done.returncode == 3, done.stderr
    assert "is unknown" in done.stdout
    assert "0 at most" not in done.stdout
