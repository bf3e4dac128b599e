"""Every command line that selfhost writes is one that the pinned engines take, by their own published parsers.

vLLM's parser lets names of quantizations, caches, back ends and parsers pass and the engine dies of them later; those
are looked up in the engine's own lists. A word that the engine does not know fails here: the last tests show it.
"""

from typing import Any

import pytest

from selfhost.engines.base import engine
from selfhost.engines.flags import Vocabulary
from selfhost.engines.parsers import parsers
from selfhost.engines.removed import removed
from selfhost.engines.since import since
from selfhost.models.families import families
from selfhost.shapes.service import ReasoningMode
from tests.engines.contract import covering, planned_lines
from tests.engines.contract.refusals import refusals

pytestmark = pytest.mark.vllm

VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23"}
WRONG: dict[str, list[tuple[list[str], str]]] = {
    "vllm": [
        (["--guided-decoding-backend", "xgrammar"], "unrecognized arguments"),
        (["--max-model-le", "4096"], "--max-model-le is no flag"),
        (["--max-model-len", "32Ki"], "--max-model-len"),
        (["--dtype", "bf16"], "invalid choice"),
        (["--quantization", "fp8_per_chanel"], "--quantization has no fp8_per_chanel"),
        (["--kv-cache-dtype", "fp8_e4m4"], "--kv-cache-dtype"),
        (["--load-format", "gguf"], "--load-format has no gguf"),
        (["--attention-backend", "FLASHATTN"], "--attention-backend"),
        (["--linear-backend", "cutlas"], "--linear-backend"),
        (["--reasoning-parser", "qwen4"], "--reasoning-parser has no qwen4"),
        (["--tool-call-parser", "hermes2"], "--tool-call-parser has no hermes2"),
        (["--default-chat-template-kwargs", "{'a': 1}"], "--default-chat-template-kwargs"),
    ],
    "sglang": [
        (["--cuda-graph-max-bs", "8"], "ambiguous option"),
        (["--context-lengt", "4096"], "--context-lengt is no flag"),
        (["--context-length", "32K"], "--context-length"),
        (["--dtype", "bf16"], "invalid choice"),
        (["--quantization", "fp8_per_channel"], "invalid choice"),
        (["--kv-cache-dtype", "fp8"], "invalid choice"),
        (["--reasoning-parser", "qwen4"], "invalid choice"),
        (["--tool-call-parser", "hermes2"], "invalid choice"),
        (["--default-chat-template-kwargs", "{'a': 1}"], "--default-chat-template-kwargs"),
        (["--enable-metrics", "true"], "unrecognized arguments"),
    ],
}


@pytest.fixture(scope="session", params=["vllm", "sglang"])
def contract(request: pytest.FixtureRequest, published: Any) -> dict[str, Any]:
    """What one engine's parser says of all our lines, and of the wrong ones."""
    name = request.param
    model = {"vllm": "--model", "sglang": "--model-path"}[name]
    covered, planned = covering.lines(name), [list(plan.argv) for plan in planned_lines.plans(name)]
    wrong = [[model, "/models/it", *line] for line, _ in WRONG[name]]
    answer = published(name, VERSIONS[name], [*covered, *planned, *wrong])
    heard = answer.pop("lines")
    right = list(zip([*covered, *planned], heard, strict=False))
    return {
        **answer,
        "engine": name,
        "covered": right[: len(covered)],
        "planned": right[len(covered) :],
        "wrong": [(*row, one) for row, one in zip(WRONG[name], heard[len(right) :], strict=True)],
    }


@pytest.mark.parametrize(("kind", "least"), [("covered", 60), ("planned", 150)])
def test_the_engine_takes_every_line_that_selfhost_writes(contract: dict[str, Any], kind: str, least: int) -> None:
    assert len(contract[kind]) >= least
    bad = {" ".join(line): found for line, heard in contract[kind] if (found := refusals(line, heard, contract))}
    assert bad == {}


def test_the_engine_reads_every_variable_that_selfhost_sets(contract: dict[str, Any]) -> None:
    name = contract["engine"]
    own = {"vllm": "VLLM_", "sglang": "SGLANG_"}[name]
    launched = (engine(name).env(launch) for launch in covering.launches(name))
    variables = {variable for env in (*launched, *(plan.env for plan in planned_lines.plans(name))) for variable in env}
    assert {variable for variable in variables if variable.startswith(own)} <= set(contract["variables"])


def test_plans_of_every_mode_are_among_them(contract: dict[str, Any]) -> None:
    modes = {plan.reasoning.mode for plan in planned_lines.plans(contract["engine"])}
    assert modes == set(ReasoningMode)


def test_a_line_means_what_was_planned(contract: dict[str, Any]) -> None:
    names = {
        "vllm": ("max_model_len", "max_num_seqs", "tensor_parallel_size", "model", "pipeline_parallel_size"),
        "sglang": ("context_length", "max_running_requests", "tp_size", "model_path", "pp_size"),
    }[contract["engine"]]
    for launch, (_, heard) in zip(covering.launches(contract["engine"]), contract["covered"], strict=True):
        parsed = heard["parsed"]
        assert [parsed[name] for name in names] == [
            launch.context,
            launch.concurrency,
            launch.cut.tensor,
            launch.model_path,
            launch.cut.pipeline,
        ]
        assert (parsed["host"], parsed["port"]) == (launch.address, launch.port)
        assert parsed["api_key"] is None
        assert (parsed["default_chat_template_kwargs"] or {}) == launch.reasoning.template_defaults
        assert (parsed["reasoning_parser"] or "") == launch.reasoning.parser
        assert (parsed["tool_call_parser"] or "") == launch.tool_parser
        assert parsed["trust_remote_code"] is launch.trust_remote_code


def test_every_kind_of_line_is_covered(contract: dict[str, Any]) -> None:
    name = contract["engine"]
    words = [set(line) for line, _ in contract["covered"]]
    for _, family in families():
        for parser in (family.reasoning_parser.get(name), family.tool_parser.get(name)):
            assert parser is None or any(parser in line for line in words)
    planned = {flag.name for flag in Vocabulary.load(name).flags if flag.planned}
    assert planned - {word for line in words for word in line} <= {"--enable-strict-thinking", "--attn-dp-size"}


def test_what_selfhost_knows_by_name_is_what_the_engine_has(contract: dict[str, Any]) -> None:
    name, flags, values = contract["engine"], set(contract["flags"]), contract["values"]
    known = parsers(name)
    assert known is not None
    assert set(known.reasoning) == set(values["--reasoning-parser"])
    assert set(known.tool) == set(values["--tool-call-parser"])
    vocabulary = Vocabulary.load(name)
    written = {flag.name for flag in vocabulary.flags} | {row.name for row in vocabulary.refused}
    assert written - flags == set()
    gone = {row.name for row in removed(name) if row.kind == "flag"}
    assert gone & flags == set()
    # One row belongs to the newest release: the wheel that is asked here has what it brought.
    newest = [flag for flag in flags if since(name, flag) == VERSIONS[name]]
    assert newest


def test_values_that_the_engine_has_dropped_are_gone(contract: dict[str, Any]) -> None:
    for row in removed(contract["engine"]):
        if row.kind == "value" and row.name in contract["values"]:
            assert row.value not in contract["values"][row.name]


def test_a_changed_name_flag_or_value_is_refused(contract: dict[str, Any]) -> None:
    for line, says, heard in contract["wrong"]:
        found = " · ".join(refusals(line, heard, contract))
        assert says in found, (line, found)
