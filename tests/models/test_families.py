"""Which family an id or a folder belongs to, and what its template changes about that."""

from pathlib import Path

import pytest

from selfhost.models.families import families, family_of, prefills_thinking
from selfhost.shapes.model import ReasoningClass

TINY = Path(__file__).parents[1] / "assets" / "tiny-reasoner"
PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
PROMPT = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
HYBRID = (
    PLAIN + PROMPT + "{%- if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"
)
ALWAYS = PLAIN + "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"
STRIPS_HISTORY = "{% set content = content.split('</think>')[-1] %}{# <think> #}" + PLAIN + PROMPT + "{%- endif %}"

# id → class, vLLM reasoning parser, vLLM tool parser; from the model cards and the parser registries of vLLM 0.33.0
KNOWN = [
    ("Qwen/Qwen3-0.6B", "T1", "qwen3", "hermes"),
    ("Qwen/Qwen3-30B-A3B", "T1", "qwen3", "hermes"),
    ("Qwen/Qwen3-4B-Instruct-2507", "N", None, "hermes"),
    ("Qwen/Qwen3-4B-Thinking-2507", "A", "qwen3", "hermes"),
    ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "N", None, "qwen3_coder"),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "N", None, "hermes"),
    ("Qwen/Qwen3.5-4B", "T1", "qwen3", "qwen3_coder"),
    ("Qwen/QwQ-32B", "A", "deepseek_r1", "hermes"),
    ("Qwen/Qwen2.5-7B-Instruct", "N", None, "hermes"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "A", "deepseek_r1", None),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "A", "deepseek_r1", None),
    ("deepseek-ai/DeepSeek-R1", "A", "deepseek_r1", "deepseek_v3"),
    ("deepseek-ai/DeepSeek-V3.1", "T2", "deepseek_v3", "deepseek_v31"),
    ("openai/gpt-oss-20b", "E1", "openai_gptoss", "openai"),
    ("zai-org/GLM-4.5-Air", "T1", "glm45", "glm45"),
    ("zai-org/GLM-5.2", "E3", "glm45", "glm47"),
    ("zai-org/GLM-5.1", "T1", "glm45", "glm47"),
    ("moonshotai/Kimi-K2-Instruct", "N", None, "kimi_k2"),
    ("moonshotai/Kimi-K2-Thinking", "A", "kimi_k2", "kimi_k2"),
    ("google/gemma-3-4b-it", "N", None, "pythonic"),
    ("google/gemma-4-E4B-it", "T1", "gemma4", "gemma4"),
    ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "N", None, "mistral"),
    ("mistralai/Magistral-Small-2509", "S", "mistral", "mistral"),
    ("meta-llama/Llama-3.1-8B-Instruct", "N", None, "llama3_json"),
    ("microsoft/phi-4", "N", None, None),
    ("microsoft/Phi-4-mini-instruct", "N", None, "phi4_mini_json"),
    ("microsoft/Phi-4-reasoning-plus", "A", "qwen3", None),
    ("HuggingFaceTB/SmolLM3-3B", "T1", "qwen3", "hermes"),
    ("ibm-granite/granite-3.3-8b-instruct", "T2", "qwen3", "granite"),
    ("stepfun-ai/Step-3.7-Flash", "E1", "step3p5", "step3p5"),
    ("stepfun-ai/Step-3.5-Flash", "A", "step3p5", "step3p5"),
    ("ByteDance-Seed/Seed-OSS-36B-Instruct", "H", "seed_oss", "seed_oss"),
]


@pytest.mark.parametrize(("repo_id", "kind", "reasoning", "tools"), KNOWN, ids=[row[0] for row in KNOWN])
def test_a_hub_id_names_its_family(repo_id: str, kind: str, reasoning: str | None, tools: str | None) -> None:
    family = family_of(repo_id)
    assert family.reasoning_class.value == kind
    assert family.reasoning_parser.get("vllm") == reasoning
    assert family.tool_parser.get("vllm") == tools
    assert family.source


def test_an_unknown_id_has_no_parser() -> None:
    family = family_of("HuggingFaceTB/SmolLM2-135M-Instruct")
    assert (family.reasoning_class, family.reasoning_parser, family.tool_parser) == (ReasoningClass.NONE, {}, {})
    assert family.note


def test_no_family_that_does_not_think_has_a_reasoning_parser() -> None:
    """A parser on such a model puts the whole answer into the reasoning field (seen on both engines)."""
    wrong = [f.id for _, f in families() if f.reasoning_class is ReasoningClass.NONE and f.reasoning_parser]
    assert wrong == []


def test_family_ids_are_unique() -> None:
    ids = [family.id for _, family in families()]
    assert len(ids) == len(set(ids)) >= 47


def test_a_switch_that_the_template_does_not_have_is_not_believed() -> None:
    family = family_of("someone/Qwen3-8B-roleplay", template=PLAIN + PROMPT + "{%- endif %}")
    assert family.reasoning_class is ReasoningClass.NONE
    assert family.reasoning_parser == {}
    assert family.tool_parser["vllm"] == "hermes"
    assert "this template has none" in family.note


def test_a_switch_family_whose_template_opens_the_block_itself_always_thinks() -> None:
    family = family_of("someone/Qwen3-8B-o1", template=ALWAYS)
    assert family.reasoning_class is ReasoningClass.ALWAYS
    assert family.reasoning_parser["vllm"] == "qwen3"


def test_a_confirmed_switch_leaves_the_row_as_it_is() -> None:
    assert family_of("Qwen/Qwen3-8B", template=HYBRID) == family_of("Qwen/Qwen3-8B")


@pytest.mark.parametrize(
    ("model_type", "template", "kind", "reasoning", "tools"),
    [
        ("qwen3", HYBRID, "T1", "qwen3", "hermes"),
        ("qwen3", PLAIN, "N", None, "hermes"),
        ("qwen3", ALWAYS, "A", "qwen3", "hermes"),
        ("qwen3", STRIPS_HISTORY, "N", None, "hermes"),
        ("qwen3_5_moe", HYBRID, "T1", "qwen3", "qwen3_coder"),
        ("qwen2", ALWAYS, "A", "deepseek_r1", None),
        ("qwen2", PLAIN, "N", None, "hermes"),
        ("gpt_oss", "", "E1", "openai_gptoss", "openai"),
        ("llama", PLAIN, "N", None, None),
        ("llama", "<|start_header_id|>", "N", None, "llama3_json"),
        ("never_heard_of", HYBRID, "T1", "qwen3", None),
        ("never_heard_of", PLAIN, "N", None, None),
        ("", "", "N", None, None),
    ],
)
def test_a_local_folder_is_known_by_its_type_and_template(
    model_type: str, template: str, kind: str, reasoning: str | None, tools: str | None
) -> None:
    family = family_of("", model_type=model_type, template=template)
    assert family.reasoning_class.value == kind
    assert family.reasoning_parser.get("vllm") == reasoning
    assert family.tool_parser.get("vllm") == tools
    assert family.note


@pytest.mark.parametrize(
    ("template", "words"),
    [(None, "was not read"), ("", "it has no chat template"), (PLAIN, "mentions no thinking")],
)
def test_what_is_said_of_a_template_was_looked_at(template: str | None, words: str) -> None:
    assert words in family_of("acme/unheard-of", model_type="acme", template=template).note


def test_a_family_found_by_model_type_names_where_the_type_is_from() -> None:
    assert "transformers/models/gpt_oss" in family_of("", model_type="gpt_oss").source


def test_architectures_stand_in_for_a_missing_model_type() -> None:
    assert family_of("", architectures=("Qwen3MoeForCausalLM",), template=HYBRID).id == "F05"


def test_the_tiny_reasoner_can_switch_its_thinking() -> None:
    template = (TINY / "chat_template.jinja").read_text(encoding="utf-8")
    family = family_of("", model_type="qwen3", template=template)
    assert family.reasoning_class is ReasoningClass.TOGGLE_ENABLE
    assert family.reasoning_parser["vllm"] == "qwen3"


def test_only_an_open_think_block_in_the_generation_prompt_counts_as_prefilled() -> None:
    assert prefills_thinking(ALWAYS)
    assert not prefills_thinking(HYBRID)
    assert not prefills_thinking(STRIPS_HISTORY)
