"""Thinking on both engines: every family in every mode, and what only one of the engines can keep.

Fields are those of SGLang 0.5.23 (srt/entrypoints/openai/serving_chat.py, srt/constrained) and vLLM 0.33.0.
"""

from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.engines.parsers import parsers
from selfhost.models.families import families
from selfhost.plan.reasoning import ReasoningDecision, decide_reasoning, parse
from selfhost.plan.reasoning_limits import value_of
from selfhost.plan.reasoning_wire import wire_of, words_of
from selfhost.shapes.model import ReasoningClass
from selfhost.shapes.plan import EnforcedBy
from selfhost.shapes.service import ReasoningMode
from tests.fakes.planning import a_model, a_service

ENGINES = ("vllm", "sglang")
MODES = ("on", "off", "budget=2048", "effort=low", "effort=medium", "effort=high")
BOTH_ON = {"enable_thinking": True, "thinking": True}


def resolve(
    id: str, asked: str | None = None, *, engine: str = "sglang", context: int = 32768, args: tuple[str, ...] = ()
) -> ReasoningDecision:
    wish: dict[str, Any] = {} if asked is None else {"reasoning": parse(asked)}
    service = a_service(id, engine_args=args, **wish)
    return decide_reasoning(model=a_model(id), service=service, engine=engine, context=context)


def attempt(family: Any, engine: str, asked: str | None) -> ReasoningDecision | InputError:
    wish: dict[str, Any] = {} if asked is None else {"reasoning": parse(asked)}
    try:
        return decide_reasoning(
            model=a_model(family=family), service=a_service(**wish), engine=engine, context=32768
        )  # fmt: skip
    except InputError as error:
        return error


def refused(*args: Any, **more: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        resolve(*args, **more)
    assert caught.value.fix
    assert not caught.value.fix[0].startswith("or ")
    return caught.value


@pytest.mark.parametrize("asked", [*MODES, None])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", [family for _, family in families()], ids=lambda family: family.id)
def test_every_family_in_every_mode_has_a_known_parser_or_a_way_out(
    family: Any, engine: str, asked: str | None
) -> None:
    known = parsers(engine)
    assert known is not None
    made = attempt(family, engine, asked)
    if isinstance(made, InputError):
        assert asked is not None, made.what
        assert made.fix, made.what
        assert made.id in {"PL020", "PL021", "PL022", "PL023", "PL025"}
        return
    plan = made.plan
    if family.reasoning_class is ReasoningClass.NONE:
        assert (plan.parser, plan.mode) == ("", ReasoningMode.OFF)
        return
    if plan.parser:
        assert plan.parser in known.reasoning
        assert plan.response_field == words_of(engine).response_field
    else:  # thoughts stay in the text: only what was not asked for, or thinking that the template switches off
        assert asked in (None, "off")
        assert engine not in family.reasoning_parser
        assert "stand in the text" in made.decision.reason
    assert plan.unsent in ("served", "only when asked")
    assert (plan.unsent == "served") == (made.decision.enforced_by is not EnforcedBy.CLIENT)


@pytest.mark.parametrize("engine", ENGINES)
def test_thoughts_stand_where_each_engine_puts_them(engine: str) -> None:
    field = {"vllm": "reasoning", "sglang": "reasoning_content"}[engine]
    assert resolve("Qwen/Qwen3-4B", engine=engine).plan.response_field == field
    assert resolve("Qwen/Qwen2.5-7B-Instruct", engine=engine).plan.response_field == ""


@pytest.mark.parametrize("id", ["Qwen/Qwen3-4B", "google/gemma-4-31B-it", "deepseek-ai/DeepSeek-R1"])
def test_sglang_keeps_a_budget_for_a_client_that_sends_nothing(id: str) -> None:
    """With the variable the token filter is on for every detector, also those that exclude no tokens (`env`)."""
    made = resolve(id, "budget=2048")
    assert made.plan.server_flags == ("--enable-strict-thinking",)
    assert made.plan.env == {"SGLANG_MAX_THINK_TOKENS": "2048"}
    assert made.plan.client_extras == {"max_tokens": 3072}
    assert made.plan.unsent == "served"
    assert made.decision.enforced_by is EnforcedBy.SERVER


def test_a_budget_in_one_request_is_a_custom_parameter_on_sglang() -> None:
    assert words_of("sglang").budget(512) == {"custom_params": {"thinking_budget": 512}}
    assert words_of("vllm").budget(512) == {"thinking_token_budget": 512}


def test_without_a_budget_sglang_gets_no_filter() -> None:
    for asked in (None, "on", "off"):
        plan = resolve("Qwen/Qwen3-4B", asked).plan
        assert (plan.server_flags, plan.env) == ((), {})


@pytest.mark.parametrize(
    "args",
    [
        ("--grammar-backend", "none"),
        ("--grammar-backend=llguidance",),
        ("--grammar_backend", "outlines"),
        ("--speculative-algorithm", "UNO"),
    ],
)
def test_a_budget_needs_the_grammar_back_end_that_can_cut(args: tuple[str, ...]) -> None:
    assert refused("Qwen/Qwen3-4B", "budget=2048", args=args).id == "PL026"
    assert resolve("Qwen/Qwen3-4B", "on", args=args).plan.mode is ReasoningMode.ON
    assert resolve("Qwen/Qwen3-4B", "budget=2048", args=("--grammar-backend", "xgrammar")).plan.env


def test_effort_of_gpt_oss_is_a_server_default_on_sglang_alone() -> None:
    served = resolve("openai/gpt-oss-20b", "effort=low")
    assert served.plan.template_defaults == {"reasoning_effort": "low"}
    assert served.plan.request_on == {"reasoning_effort": "low"}
    assert served.plan.unsent == "served"
    asked = resolve("openai/gpt-oss-20b", "effort=low", engine="vllm")
    assert asked.plan.unsent == "only when asked"
    assert "model's own level counts" in asked.decision.reason


def test_gpt_oss_takes_no_budget_on_either_engine() -> None:
    for engine, word in (("vllm", "400"), ("sglang", "ignored")):
        error = refused("openai/gpt-oss-20b", "budget=100", engine=engine)
        assert error.id == "PL022"
        assert word in error.why
        assert any("effort=low" in fix for fix in error.fix)


def test_hunyuan_takes_a_budget_on_sglang_and_not_on_vllm() -> None:
    error = refused("tencent/Hunyuan-A13B-Instruct", "budget=100", engine="vllm")
    assert any("--engine sglang" in fix for fix in error.fix)
    assert resolve("tencent/Hunyuan-A13B-Instruct", "budget=100").plan.env == {"SGLANG_MAX_THINK_TOKENS": "100"}


def test_seed_oss_is_for_vllm() -> None:
    for asked in ("on", "off", "budget=512"):
        error = refused("ByteDance-Seed/Seed-OSS-36B-Instruct", asked)
        assert error.id == "PL025"
        assert any("--engine vllm" in fix for fix in error.fix)
    assert "vLLM sets them apart" in resolve("ByteDance-Seed/Seed-OSS-36B-Instruct").decision.reason


def test_granite_without_a_parser_can_still_be_kept_from_thinking() -> None:
    off = resolve("ibm-granite/granite-3.2-8b-instruct", "off").plan
    assert (off.parser, off.template_defaults) == ("", {"enable_thinking": False, "thinking": False})
    assert not off.can_switch
    assert refused("ibm-granite/granite-3.2-8b-instruct", "on").id == "PL025"


def test_sglang_finds_thoughts_of_magistral_only_when_the_request_keeps_their_marks() -> None:
    made = resolve("mistralai/Magistral-Small-2509")
    assert made.plan.client_extras == {"skip_special_tokens": False}
    assert made.plan.unsent == "only when asked"
    assert "drops the marks" in made.decision.reason
    assert resolve("mistralai/Magistral-Small-2509", engine="vllm").plan.client_extras == {}


def test_aliases_of_effort_are_a_flag_of_vllm_alone() -> None:
    assert "--reasoning-effort-map" in resolve("mistralai/Mistral-Small-4-119B-2603", engine="vllm").flags
    assert resolve("mistralai/Mistral-Small-4-119B-2603").flags == ()
    assert resolve("mistralai/Mistral-Small-4-119B-2603", "on").plan.template_defaults == {"reasoning_effort": "high"}


def test_a_parser_that_expects_thoughts_is_refused_while_thinking_is_off() -> None:
    """vllm#19222, vllm#23429: the answer is taken for a thought and its text is empty."""
    error = refused("Qwen/Qwen3-4B", "off", engine="vllm", args=("--reasoning-parser", "deepseek_r1"))
    assert error.id == "PL027"
    assert "`qwen3`" in error.fix[0]
    assert refused("Qwen/Qwen3-4B", "off", args=("--reasoning-parser=qwen3-thinking",)).id == "PL027"
    assert resolve("Qwen/Qwen3-4B", "on", engine="vllm", args=("--reasoning-parser", "deepseek_r1")).plan.can_think


@pytest.mark.parametrize("engine", ENGINES)
def test_parsers_that_hear_no_switch_are_real_ones(engine: str) -> None:
    known = parsers(engine)
    assert known is not None
    assert words_of(engine).deaf <= known.reasoning


def test_always_thinking_families_get_no_switch_on_sglang_either() -> None:
    plan = resolve("moonshotai/Kimi-K2-Thinking").plan
    assert (plan.template_defaults, plan.request_off, plan.can_switch) == ({}, {}, False)


def test_both_spellings_of_the_switch_on_both_engines() -> None:
    for engine in ENGINES:
        assert resolve("deepseek-ai/DeepSeek-V3.1", "on", engine=engine).plan.template_defaults == BOTH_ON


@pytest.mark.parametrize(
    ("asked", "context", "least"),
    [
        ("on", 32768, 16384),  # model cards ask for 16k and more
        ("on", 8192, 7936),  # all but 256 for the prompt
        ("budget=2048", 32768, 3072),  # 1,024 for the reply behind it
        ("off", 32768, 0),
    ],
)
def test_what_a_reply_needs_so_as_not_to_be_cut_in_its_thoughts(asked: str, context: int, least: int) -> None:
    for engine in ENGINES:
        assert resolve("Qwen/Qwen3-4B", asked, engine=engine, context=context).plan.answer_budget == least


def test_a_model_without_thoughts_offers_its_sibling() -> None:
    error = refused("moonshotai/Kimi-K2-Instruct", "on")
    assert any("Kimi-K2.5" in fix for fix in error.fix)


def test_possible_modes_are_those_that_resolve() -> None:
    for _, family in families():
        for engine in ENGINES:
            wire = wire_of(family, engine=engine)
            assert ("on" in wire.possible) == bool(wire.parser)


@pytest.mark.parametrize(
    ("args", "value"),
    [((), None), (("--x", "1", "--x=2"), "2"), (("--y", "--x"), ""), (("--a_b", "1"), None), (("--x", "1"), "1")],
)
def test_the_last_value_of_a_flag_counts(args: tuple[str, ...], value: str | None) -> None:
    assert value_of(args, "--x") == value
