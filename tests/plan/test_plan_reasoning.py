"""Every class of family, in every mode. Expected fields are those of vLLM's and the publishers' documentation."""

from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.models.families import families
from selfhost.plan.reasoning import ReasoningDecision, decide_reasoning, parse
from selfhost.plan.reasoning_wire import wire_of
from selfhost.shapes.model import ReasoningClass
from selfhost.shapes.plan import EnforcedBy
from selfhost.shapes.service import ReasoningMode
from tests.fakes.planning import a_model, a_service

BOTH_ON = {"enable_thinking": True, "thinking": True}
BOTH_OFF = {"enable_thinking": False, "thinking": False}


def resolve(id: str, asked: str | None = None, *, context: int = 32768) -> ReasoningDecision:
    wish: dict[str, Any] = {} if asked is None else {"reasoning": parse(asked)}
    return decide_reasoning(model=a_model(id), service=a_service(id, **wish), engine="vllm", context=context)


@pytest.mark.parametrize(
    ("text", "mode", "number", "level"),
    [
        ("on", "on", None, None),
        ("OFF", "off", None, None),
        ("budget=0", "budget", 0, None),
        ("budget=2048", "budget", 2048, None),
        ("budget=16_384", "budget", 16384, None),
        (" effort=low ", "effort", None, "low"),
    ],
)
def test_modes_are_read(text: str, mode: str, number: int | None, level: str | None) -> None:
    ask = parse(text)
    assert (ask.mode.value, ask.budget_tokens, ask.effort) == (mode, number, level)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "budget",
        "budget=",
        "budget=-1",
        "budget=1.5",
        "budget=²",
        "effort",
        "effort=max",
        "on=1",
        "off please",
    ],
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.id == "CF020"


def test_a_toggle_family_gets_both_spellings_and_its_own_default() -> None:
    made = resolve("Qwen/Qwen3-4B").plan
    assert made.mode is ReasoningMode.ON
    assert made.parser == "qwen3"
    assert made.template_defaults == BOTH_ON
    assert made.request_off == {"chat_template_kwargs": BOTH_OFF}
    assert made.unsent == "served"
    assert made.can_switch


def test_off_keeps_the_parser_for_clients_that_switch_thinking_on() -> None:
    made = resolve("Qwen/Qwen3-4B", "off").plan
    assert made.template_defaults == BOTH_OFF
    assert made.parser == "qwen3"
    assert made.request_on == {"chat_template_kwargs": BOTH_ON}


@pytest.mark.parametrize("id", ["deepseek-ai/DeepSeek-V3.1", "google/gemma-4-31B-it", "LGAI-EXAONE/EXAONE-4.0-32B"])
def test_families_that_do_not_think_by_default_are_told_so_explicitly(id: str) -> None:
    made = resolve(id).plan
    assert made.mode is ReasoningMode.OFF
    assert made.template_defaults == BOTH_OFF


def test_small_sizes_of_one_family_have_another_default() -> None:
    assert resolve("Qwen/Qwen3.5-27B").plan.mode is ReasoningMode.ON
    assert resolve("Qwen/Qwen3.5-0.8B").plan.mode is ReasoningMode.OFF
    assert resolve("Qwen/Qwen3.5-2B").plan.mode is ReasoningMode.OFF


def test_a_budget_on_vllm_is_the_clients_to_send() -> None:
    made = resolve("Qwen/Qwen3-4B", "budget=2048")
    assert made.plan.client_extras == {"thinking_token_budget": 2048, "max_tokens": 3072}
    assert made.plan.template_defaults == BOTH_ON
    assert made.plan.unsent == "only when asked"
    assert made.decision.enforced_by is EnforcedBy.CLIENT
    assert "thinking is unlimited" in made.decision.reason


def test_a_parser_that_does_not_know_its_marks_gets_them_by_flag() -> None:
    made = resolve("deepseek-ai/DeepSeek-V3.1", "budget=512")
    assert made.flags[0] == "--reasoning-config"
    assert '"reasoning_end_str": "</think>"' in made.flags[1]
    assert resolve("Qwen/Qwen3-4B").flags == ()


@pytest.mark.parametrize("id", ["deepseek-ai/DeepSeek-R1", "moonshotai/Kimi-K2-Thinking", "Qwen/QwQ-32B"])
def test_always_thinking_families_get_no_switch_that_would_blind_their_parser(id: str) -> None:
    made = resolve(id).plan
    assert made.mode is ReasoningMode.ON
    assert made.template_defaults == {}
    assert made.request_on == {}
    assert not made.can_switch
    with pytest.raises(InputError) as caught:
        resolve(id, "off")
    assert caught.value.id == "PL020"
    assert any("budget=0" in fix for fix in caught.value.fix)


def test_effort_of_gpt_oss_is_a_field_of_the_request_and_nowhere_else() -> None:
    made = resolve("openai/gpt-oss-20b", "effort=low")
    assert made.plan.client_extras == {"reasoning_effort": "low"}
    assert made.plan.template_defaults == {}
    assert made.plan.unsent == "only when asked"
    assert made.plan.parser == "openai_gptoss"
    with pytest.raises(InputError) as off:
        resolve("openai/gpt-oss-20b", "off")
    assert any("effort=low" in fix for fix in off.value.fix)
    with pytest.raises(InputError) as budget:
        resolve("openai/gpt-oss-20b", "budget=100")
    assert budget.value.id == "PL022"


def test_effort_that_the_template_reads_is_a_server_default() -> None:
    made = resolve("zai-org/GLM-5.3", "effort=low").plan
    assert made.template_defaults == {"reasoning_effort": "low"}
    assert made.unsent == "served"


def test_effort_as_switch() -> None:
    on = resolve("mistralai/Mistral-Small-4-119B-2603", "on").plan
    assert on.template_defaults == {"reasoning_effort": "high"}
    assert on.request_off == {"reasoning_effort": "none"}
    with pytest.raises(InputError) as caught:
        resolve("mistralai/Mistral-Small-4-119B-2603", "effort=medium")
    assert caught.value.id == "PL023"
    assert resolve("tencent/Hy3-Instruct", "off").plan.template_defaults == {"reasoning_effort": "no_think"}


def test_toggle_and_effort_together() -> None:
    made = resolve("Qwen/Qwen3.8-27B", "effort=high").plan
    assert made.template_defaults == {**BOTH_ON, "reasoning_effort": "xhigh"}
    kimi = resolve("moonshotai/Kimi-K3", "effort=low").plan
    assert kimi.template_defaults == {**BOTH_ON, "thinking_effort": "low"}


def test_a_mode_word() -> None:
    assert resolve("MiniMaxAI/MiniMax-M3", "off").plan.template_defaults == {"thinking_mode": "disabled"}
    assert resolve("MiniMaxAI/MiniMax-M3").plan.template_defaults == {"thinking_mode": "enabled"}


def test_a_system_prompt_switch_is_not_one_field_of_a_request() -> None:
    made = resolve("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "off")
    assert made.plan.template_defaults == {"enable_thinking": False}
    assert not made.plan.can_switch
    assert "/no_think" in made.decision.reason


def test_a_budget_that_the_template_knows_is_a_server_default() -> None:
    made = resolve("ByteDance-Seed/Seed-OSS-36B-Instruct", "budget=2048").plan
    assert made.template_defaults["thinking_budget"] == 2048
    assert made.unsent == "served"


def test_who_keeps_a_budget() -> None:
    """On vLLM the engine cuts only what a request asks to be cut; a budget in the template is the model's to keep."""
    assert resolve("Qwen/Qwen3-4B", "budget=2048").decision.enforced_by is EnforcedBy.CLIENT
    soft = resolve("ByteDance-Seed/Seed-OSS-36B-Instruct", "budget=2048").decision
    assert soft.enforced_by is EnforcedBy.NOBODY
    assert "nothing cuts it off" in soft.reason
    assert resolve("ByteDance-Seed/Seed-OSS-36B-Instruct").decision.enforced_by is EnforcedBy.SERVER


def test_without_a_budget_the_template_gets_none() -> None:
    assert resolve("ByteDance-Seed/Seed-OSS-36B-Instruct").plan.template_defaults == {"thinking_budget": -1}


def test_a_model_that_does_not_think_gets_no_parser_and_refuses_thinking() -> None:
    made = resolve("Qwen/Qwen2.5-7B-Instruct").plan
    assert (made.parser, made.can_think, made.template_defaults) == ("", False, {})
    assert resolve("Qwen/Qwen2.5-7B-Instruct", "off").plan.mode is ReasoningMode.OFF
    for asked in ("on", "budget=10", "effort=low"):
        with pytest.raises(InputError) as caught:
            resolve("Qwen/Qwen2.5-7B-Instruct", asked)
        assert caught.value.id == "PL021"


def test_a_budget_must_leave_room_for_the_answer() -> None:
    with pytest.raises(InputError) as caught:
        resolve("Qwen/Qwen3-4B", "budget=32000", context=32768)
    assert caught.value.id == "PL024"
    with pytest.raises(InputError):  # 1,024 for the reply are left, none for the prompt
        resolve("Qwen/Qwen3-4B", "budget=31744", context=32768)
    assert resolve("Qwen/Qwen3-4B", "budget=20", context=1024).plan.client_extras["max_tokens"] == 532
    smaller = next(fix for fix in caught.value.fix if "smaller" in fix).rpartition("=")[2]
    assert resolve("Qwen/Qwen3-4B", f"budget={smaller}", context=32768).plan.budget_tokens == int(smaller)


def test_little_room_for_thinking_is_a_remark_and_not_a_refusal() -> None:
    assert "little room for thinking" in resolve("Qwen/Qwen3-4B", context=2048).decision.reason
    assert "little room" not in resolve("Qwen/Qwen3-4B", context=32768).decision.reason


@pytest.mark.parametrize("family", [family for _, family in families()], ids=lambda family: family.id)
def test_no_family_is_served_without_a_plan(family: Any) -> None:
    """Each mode that a family's wire names can be planned; each other one is refused with a way out."""
    model = a_model(family=family)
    wire = wire_of(family, engine="vllm")
    for asked in ("on", "off", "budget=64", "effort=low", "effort=medium", "effort=high"):
        service = a_service(reasoning=parse(asked))
        named = "budget=N" if asked.startswith("budget") else asked
        thinks = family.reasoning_class is not ReasoningClass.NONE
        if (thinks and named in wire.possible) or (not thinks and asked == "off"):
            made = decide_reasoning(model=model, service=service, engine="vllm", context=32768)
            assert str(service.reasoning) == made.decision.value or not thinks
        else:
            with pytest.raises(InputError) as caught:
                decide_reasoning(model=model, service=service, engine="vllm", context=32768)
            assert caught.value.fix
            assert not caught.value.fix[0].startswith("or ")
