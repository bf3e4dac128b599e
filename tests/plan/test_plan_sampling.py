"""Sampling defaults: what publishers advise, and who carries it out."""

import json
from typing import Any

import pytest

from selfhost.core.table import read_table
from selfhost.models.families import families
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.reasoning import decide_reasoning, parse
from selfhost.plan.sampling import Sampling, decide_sampling
from selfhost.shapes.model import Origin
from selfhost.shapes.plan import EnforcedBy
from tests.fakes.planning import a_model, a_service

QWEN_OFF = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.0}
"""https://huggingface.co/Qwen/Qwen3-4B, best practices, non-thinking mode."""


def sample(
    id: str, asked: str | None = None, *, engine: str = "vllm", flags: dict[str, str] | None = None, **more: Any
) -> Sampling:
    wish: dict[str, Any] = {} if asked is None else {"reasoning": parse(asked)}
    model = a_model(id, **more)
    reasoning = decide_reasoning(model=model, service=a_service(id, **wish), engine=engine, context=32768).plan
    return decide_sampling(model=model, reasoning=reasoning, passed=PassedOn(flags=flags or {}), engine=engine)


def test_vllm_serves_the_advice_for_the_mode() -> None:
    made = sample("Qwen/Qwen3-4B", "off")
    assert made.flags[0] == "--override-generation-config"
    assert json.loads(made.flags[1]) == QWEN_OFF
    assert made.decision.enforced_by is EnforcedBy.SERVER
    assert made.client == {}
    assert "-- --override-generation-config {}" in made.decision.alternatives[0]


def test_sglang_keeps_no_default_for_chats_so_the_client_sends_it() -> None:
    made = sample("Qwen/Qwen3-4B", "off", engine="sglang")
    assert made.flags == ()
    assert made.client == QWEN_OFF
    assert made.decision.enforced_by is EnforcedBy.CLIENT
    assert "the client has to send it" in made.decision.reason


def test_thinking_keeps_the_models_own() -> None:
    """Qwen3's generation_config.json is written for thinking: 0.6, 0.95, 20."""
    for asked in (None, "on", "budget=512"):
        made = sample("Qwen/Qwen3-4B", asked)
        assert (made.flags, made.decision.value) == ((), "the model's own")


@pytest.mark.parametrize("asked", ["on", "budget=512"])
def test_a_budget_is_thinking(asked: str) -> None:
    made = sample("LGAI-EXAONE/EXAONE-4.0-32B", asked)
    assert json.loads(made.flags[1]) == {"temperature": 0.6, "top_p": 0.95}
    assert sample("LGAI-EXAONE/EXAONE-4.0-32B", "off").flags == ()


def test_greedy_where_the_card_says_so() -> None:
    made = sample("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "off")
    assert json.loads(made.flags[1]) == {"temperature": 0.0}
    assert made.decision.value == "temperature 0"


@pytest.mark.parametrize("flag", ["--override-generation-config", "--generation-config", "--sampling-defaults"])
def test_one_flag_of_the_user_turns_it_off(flag: str) -> None:
    made = sample("Qwen/Qwen3-4B", "off", flags={flag: "model"})
    assert (made.flags, made.client, made.decision.value) == ((), {}, "your own")
    assert made.decision.by == f"-- {flag} model"


def test_a_folder_may_be_another_model() -> None:
    assert sample("Qwen/Qwen3-4B", "off", origin=Origin.FOLDER).flags == ()


def test_every_advice_is_for_a_family_that_has_the_mode() -> None:
    known = {family.id: family for _, family in families()}
    for row in read_table("selfhost.plan", "sampling.toml")["advice"]:
        assert row["mode"] in ("on", "off")
        assert row["source"].startswith("https://")
        # The fields that vLLM 0.33.0 reads out of a generation config.
        assert set(row["values"]) <= {"temperature", "top_p", "top_k", "min_p", "repetition_penalty"}
        if "family" in row:
            assert row["family"] in known
            assert row["mode"] == "off" or known[row["family"]].reasoning_class.value != "N"
