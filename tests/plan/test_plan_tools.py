"""Tool calls: which parser, and what it needs besides."""

from typing import Any

import pytest

from selfhost.core.table import read_table
from selfhost.engines.parsers import parsers
from selfhost.models.families import families
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.tools import Tools, decide_tools
from tests.fakes.planning import a_model


def tools(
    id: str = "Qwen/Qwen3-4B", *, engine: str = "vllm", flags: dict[str, str] | None = None, **more: Any
) -> Tools:
    return decide_tools(model=a_model(id, **more), engine=engine, passed=PassedOn(flags=flags or {}))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("family", [family for _, family in families()], ids=lambda family: family.id)
def test_every_parser_is_one_of_the_engine(family: Any, engine: str) -> None:
    known = parsers(engine)
    assert known is not None
    made = tools(family=family, engine=engine)
    assert made.parser in known.tool or not made.parser
    assert made.decision.reason
    assert made.decision.source


def test_on_by_itself_in_each_engines_own_words() -> None:
    vllm, sglang = tools(), tools(engine="sglang")
    assert (vllm.parser, vllm.flags) == ("hermes", ("--enable-auto-tool-choice",))
    assert (sglang.parser, sglang.flags) == ("qwen25", ())
    assert vllm.decision.value == "parser hermes"


@pytest.mark.parametrize(
    ("id", "template"),
    [
        ("deepseek-ai/DeepSeek-R1", "tool_chat_template_deepseekr1.jinja"),
        ("deepseek-ai/DeepSeek-V3.1", "tool_chat_template_deepseekv31.jinja"),
        ("google/gemma-4-31B-it", "tool_chat_template_gemma4.jinja"),
        ("meta-llama/Llama-3.1-8B-Instruct", "tool_chat_template_llama3.1_json.jinja"),
    ],
)
def test_a_template_that_is_not_in_the_wheel_is_named(id: str, template: str) -> None:
    made = tools(id)
    assert template in made.decision.reason
    assert made.parser
    assert made.decision.alternatives == (f"-- --chat-template {template}",)
    assert template not in tools(id, flags={"--chat-template": "mine.jinja"}).decision.reason
    assert template not in tools(id, engine="sglang").decision.reason


def test_a_plugin_of_the_models_repository_is_named_and_not_run() -> None:
    made = tools("nvidia/NVIDIA-Nemotron-Nano-9B-v2")
    assert (made.parser, made.flags) == ("", ())
    assert "--tool-parser-plugin" in made.decision.reason


def test_where_one_engine_has_a_parser_and_the_other_not() -> None:
    made = tools("ByteDance-Seed/Seed-OSS-36B-Instruct", engine="sglang")
    assert made.parser == ""
    assert "vLLM has one" in made.decision.reason


def test_what_the_user_passes_on_counts() -> None:
    own = tools(flags={"--tool-call-parser": "xlam"})
    assert (own.parser, own.decision.by) == ("xlam", "-- --tool-call-parser xlam")
    off = tools(flags={"--enable-auto-tool-choice": "false"})
    assert (off.parser, off.flags, off.decision.value) == ("", (), "none")
    assert off.decision.by == "-- --no-enable-auto-tool-choice"


def test_needs_are_of_families_that_exist() -> None:
    known = {family.id for _, family in families()}
    assert {row["family"] for row in read_table("selfhost.plan", "tools.toml")["need"]} <= known
