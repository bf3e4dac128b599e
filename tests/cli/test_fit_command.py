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
