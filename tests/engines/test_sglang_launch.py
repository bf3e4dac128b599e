"""Arguments and environment of one SGLang server."""

import json

import pytest

from selfhost.core.errors import InputError
from selfhost.engines import sglang
from selfhost.engines.builds import rows
from selfhost.engines.since import too_new
from selfhost.shapes.plan import EngineBuild, Parallel, ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from tests.engines.launches import CARD, SWITCHED_OFF, launch


def value(argv: tuple[str, ...], flag: str) -> str:
    assert argv.count(flag) == 1, f"{flag} in {argv}"
    return argv[argv.index(flag) + 1]


def test_a_server_listens_where_it_was_told_and_holds_what_was_planned() -> None:
    argv = sglang.argv(launch(**CARD, context=32768, concurrency=8))
    assert value(argv, "--model-path") == "/models/smollm2"
    assert value(argv, "--host") == "127.0.0.1"
    assert value(argv, "--port") == "8000"
    assert value(argv, "--served-model-name") == "smollm2"
    assert value(argv, "--context-length") == "32768"
    assert value(argv, "--max-running-requests") == "8"
    assert value(argv, "--dtype") == "bfloat16"
    assert "--enable-metrics" in argv
    assert "--kv-cache-dtype" not in argv


def test_fp8_of_the_kv_cache_is_spelled_as_sglang_spells_it() -> None:
    argv = sglang.argv(launch(**CARD, weights_precision="fp8", kv_precision="fp8"))
    assert value(argv, "--quantization") == "fp8"
    assert value(argv, "--kv-cache-dtype") == "fp8_e4m3"
    assert value(sglang.argv(launch(**CARD, kv_precision="bf16")), "--kv-cache-dtype") == "bfloat16"
    assert "--kv-cache-dtype" not in sglang.argv(launch(**CARD, kv_precision="fp16"))


@pytest.mark.parametrize("weights", ["fp8_per_tensor", "fp8_per_block", "fp7"])
def test_a_precision_that_it_does_not_make_is_refused(weights: str) -> None:
    with pytest.raises(InputError) as caught:
        sglang.argv(launch(weights_precision=weights))
    assert caught.value.id == "PL065"


def test_the_cut_is_given_in_sglangs_names_and_experts_as_a_number() -> None:
    eight = {**CARD, "devices": tuple(f"GPU-{number}" for number in range(8))}
    cut = Parallel(tensor=4, pipeline=1, data=2, expert=True, attention_data=4)
    argv = sglang.argv(launch(**eight, parallel=cut))
    assert value(argv, "--tp-size") == "4"
    assert value(argv, "--dp-size") == "2"
    assert value(argv, "--ep-size") == "4"
    assert value(argv, "--attn-dp-size") == "4"
    assert "--pp-size" not in argv


def test_memory_is_given_as_a_share_or_as_tokens_and_never_as_bytes() -> None:
    argv = sglang.argv(launch(**CARD, gpu_memory_utilization=0.82, kv_cache_tokens=65536))
    assert value(argv, "--mem-fraction-static") == "0.82"
    assert value(argv, "--max-total-tokens") == "65536"


def test_modes_and_tools_are_defaults_of_the_server() -> None:
    argv = sglang.argv(launch(**CARD, reasoning=SWITCHED_OFF, tool_parser="qwen25"))
    assert value(argv, "--reasoning-parser") == "qwen3"
    assert json.loads(value(argv, "--default-chat-template-kwargs")) == {"enable_thinking": False, "thinking": False}
    assert value(argv, "--tool-call-parser") == "qwen25"
    assert "--enable-auto-tool-choice" not in argv


def test_a_budget_that_the_server_keeps_is_a_switch_and_a_variable() -> None:
    plan = ReasoningPlan(
        mode=ReasoningMode.BUDGET,
        budget_tokens=512,
        server_flags=("--enable-strict-thinking",),
        env={"SGLANG_MAX_THINK_TOKENS": "512"},
    )
    assert "--enable-strict-thinking" in sglang.argv(launch(reasoning=plan))
    assert sglang.env(launch(reasoning=plan))["SGLANG_MAX_THINK_TOKENS"] == "512"


def test_it_has_no_key_and_no_secret_is_in_its_arguments() -> None:
    assert sglang.KEY_VARIABLE == ""
    assert "api-key" not in " ".join(sglang.argv(launch(**CARD)))
    assert sglang.env(launch(**CARD))["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("extra", "id"),
    [
        (("--api-key", "abc"), "PL063"),
        (("--admin-api-key", "abc"), "PL063"),
        (("--host", "0.0.0.0"), "PL063"),
        (("--model", "other"), "PL063"),
        (("--grpc-mode",), "PL063"),
        (("--tp-size", "4"), "PL067"),
        (("--trust-remote-code",), "PL064"),
        (("--mem-fraction", "0.5"), "PL069"),
        (("--enable-metrics", "yes"), "PL068"),
        (("word",), "PL066"),
    ],
)
def test_flags_that_contradict_the_launch_are_refused(extra: tuple[str, ...], id: str) -> None:
    with pytest.raises(InputError) as caught:
        sglang.argv(launch(**CARD, extra=extra))
    assert caught.value.id == id


def test_the_users_own_flags_replace_the_planned_ones_by_any_of_their_names() -> None:
    two = {**CARD, "devices": ("GPU-a", "GPU-b")}
    argv = sglang.argv(launch(**two, extra=("--tensor-parallel-size", "1", "--context-length=4096")))
    assert "--tp-size" not in argv
    assert argv[-3:] == ("--tensor-parallel-size", "1", "--context-length=4096")
    assert sglang.overridden(("--ep", "2", "--context-length=32Ki")) == {"--ep-size": "2", "--context-length": "32Ki"}


def test_underscores_and_negatives_are_left_as_they_are() -> None:
    # Plain argparse reads neither; its own error is clearer than a flag that selfhost made up.
    assert sglang.overridden(("--context_length", "1", "--no-enable-metrics")) == {
        "--context_length": "1",
        "--no-enable-metrics": "true",
    }


def test_flags_that_move_memory_are_named() -> None:
    extra = ("--mem-fraction-static", "0.7", "--log-level", "debug", "--kv-cache-dtype", "fp8_e5m2")
    assert sglang.moves_memory(extra) == ("--mem-fraction-static", "--kv-cache-dtype")


@pytest.mark.parametrize(
    ("text", "number"),
    [("4096", 4096), ("32k", 32000), ("32Ki", 32768), ("25.6k", 25600), ("32K", None), ("1.5Ki", None), ("auto", None)],
)
def test_numbers_are_read_as_sglang_reads_them(text: str, number: int | None) -> None:
    # SGLang 0.5.23: srt/utils/common.py, human_readable_int
    assert sglang.count(text) == number


@pytest.mark.parametrize("build", [row for row in rows() if row.engine == "sglang"], ids=lambda row: row.version)
def test_no_planned_flag_is_newer_than_a_build_that_it_is_given_to(build: EngineBuild) -> None:
    everything = launch(
        **{**CARD, "devices": ("a", "b")},
        reasoning=SWITCHED_OFF,
        tool_parser="qwen25",
        weights_precision="fp8",
        kv_precision="fp8",
        gpu_memory_utilization=0.9,
        parallel=Parallel(tensor=2, expert=True),
    )
    assert too_new("sglang", build.version, sglang.argv(everything)) == ()
