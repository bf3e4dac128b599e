"""Several services of one file on machines with cards: each has its own, or shares that add up."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from selfhost.cli._group import load

ROOT = Path(__file__).parents[2]
FIRST, SECOND = "GPU-50900000", "GPU-50900001"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def selfhost(tmp_path: Path) -> Run:
    def run(verb: str, *words: str, services: str, host: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "selfhost.yaml").write_text(f"version: 1\nservices:\n{services}")
        env = {**os.environ, "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
        argv = [
            sys.executable,
            "-m",
            "selfhost",
            verb,
            *words,
            "--host",
            str(ROOT / "tests/snapshots" / f"{host}.json"),
        ]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=env, check=False)

    return run


def test_two_that_name_no_card_get_one_each_and_a_port_each(selfhost: Run) -> None:
    text = "  a: {model: qwen3-4b}\n  b: {model: qwen3-4b}\n"
    done = selfhost("plan", "--json", services=text, host="two-5090")
    assert done.returncode == 0, done.stderr
    plans = json.loads(done.stdout)["plans"]
    assert [plan["device"].startswith(card) for plan, card in zip(plans, (FIRST, SECOND), strict=True)] == [True, True]
    assert [plan["plan"]["port"] for plan in plans] == [8000, 8001]
    alone = json.loads(selfhost("plan", "b", "--json", services=text, host="two-5090").stdout)
    assert (alone["device"], alone["plan"]["port"]) == (plans[1]["device"], 8001)


def test_who_names_no_card_leaves_those_that_are_named(selfhost: Run) -> None:
    text = f"  a: {{model: qwen3-4b}}\n  b: {{model: qwen3-4b, devices: {FIRST}, port: 8000}}\n"
    plans = json.loads(selfhost("plan", "--json", services=text, host="two-5090").stdout)["plans"]
    assert plans[0]["device"].startswith(SECOND)
    assert [plan["plan"]["port"] for plan in plans] == [8001, 8000]


@pytest.mark.parametrize(("services", "id", "words"), [
    ("  a: {model: qwen3-4b}\n  b: {model: qwen3-4b}\n", "CF098", "no card is left for `b`"),
    ("  a: {model: qwen3-4b, share: 0.6}\n  b: {model: qwen3-4b, share: 0.6}\n", "CF098", "together at most 1"),
    ("  a: {model: qwen3-4b, devices: 0}\n  b: {model: qwen3-4b, devices: GPU-4090}\n", "CF007", "have no `share`"),
    (
        "  a: {model: qwen3-4b, devices: 0, share: 0.6}\n  b: {model: qwen3-4b, devices: GPU-4090, share: 0.5}\n",
        "CF007",
        "0.6 (a) + 0.5 (b) = 1.1",
    ),
])  # fmt: skip
def test_one_card_is_refused_to_two(selfhost: Run, services: str, id: str, words: str) -> None:
    for verb in ("plan", "fit"):
        done = selfhost(verb, services=services, host="rtx4090")
        assert done.returncode == 2
        assert f"error[{id}]" in done.stderr.replace("selfhost.yaml:4: ", "")
        assert words in " ".join(done.stderr.split()), done.stderr


def test_shares_that_add_up_are_one_card(selfhost: Run) -> None:
    text = "  a: {model: qwen3-4b, share: 0.5, engine: vllm}\n  b: {model: qwen3-4b, share: 0.45, engine: vllm}\n"
    done = selfhost("plan", "--json", services=text, host="rtx4090")
    plans = json.loads(done.stdout)["plans"]
    assert len({plan["device"] for plan in plans}) == 1
    assert "CF089" not in done.stderr


def test_a_share_of_sglang_is_told_to_be_of_what_is_left(selfhost: Run) -> None:
    text = "  a: {model: qwen3-4b, share: 0.5, engine: vllm}\n  b: {model: qwen3-4b, share: 0.4, engine: sglang}\n"
    done = selfhost("plan", services=text, host="rtx4090")
    assert "warning[CF089]: `b` gets about 0.20 of the card, not 0.4, once `a` runs" in done.stderr


def test_a_neighbour_that_cannot_be_planned_stops_nobody_else(selfhost: Run) -> None:
    text = "  a: {model: qwen3-4b}\n  b: {model: nobody/knows-this}\n"
    assert selfhost("plan", "a", services=text, host="two-5090").returncode == 0
    refused = selfhost("plan", "b", services=text, host="two-5090")
    assert (refused.returncode, "knows-this" in refused.stderr) == (4, True)


def test_an_error_of_render_proposes_render() -> None:
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "selfhost", "render", "compose", "no-such-model"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=ROOT, env=env, check=False)
    assert "selfhost render compose Qwen/Qwen3-4B" in done.stderr


def test_an_option_is_declared_alike_in_every_command_about_a_service() -> None:
    seen: dict[str, set[tuple[str, ...]]] = {}
    for verb in ("up", "plan", "render", "fit"):
        for option in load(verb).params:
            if option.name not in ("host", "json", "check", "explain", "progress"):
                told = (*option.opts, str(option.metavar), str(getattr(option, "help", "")), type(option.type).__name__)
                seen.setdefault(str(option.name), set()).add(told)
    assert {name: len(told) for name, told in seen.items() if len(told) > 1} == {}
    assert {"file", "overwrite", "device", "context_tokens", "engine"} <= seen.keys()
