"""What the user passes on replaces what was planned, or is refused by name."""

import pytest

from selfhost.core.errors import InputError
from selfhost.engines import vllm
from tests.engines.launches import CARD, SWITCHED_OFF, launch


def argv(*extra: str, **changes: object) -> tuple[str, ...]:
    return vllm.argv(launch(extra=extra, **changes))


@pytest.mark.parametrize(
    "extra",
    [
        ("--max-model-len", "512"),
        ("--max-model-len=512",),
        ("--max_model_len", "512"),
        ("--max_model_len=512",),
        ("--max-model-len", "-1"),
    ],
)
def test_a_flag_of_the_user_replaces_the_planned_one_however_it_is_written(extra: tuple[str, ...]) -> None:
    got = argv(*extra)
    assert got[-len(extra) :] == extra
    assert "2048" not in got


@pytest.mark.parametrize(
    ("extra", "gone"),
    [
        (("-q", "fp8_per_block"), "fp8_per_channel"),
        (("--no-enforce-eager",), "--enforce-eager"),
        (("-O2",), "--enforce-eager"),
        (("-O", "1"), "--enforce-eager"),
        (("--optimization-level=3",), "--enforce-eager"),
        (("-cc.mode=3",), "--enforce-eager"),
        (("--compilation-config", '{"mode": 3}'), "--enforce-eager"),
        (("--device-memory-utilization", "0.5"), "--kv-cache-memory-bytes"),
        (("--gpu-memory-utilization", "0.5"), "--kv-cache-memory-bytes"),
        (("--no-enable-auto-tool-choice",), "--tool-call-parser"),
        (("--disable-auto-tool-choice",), "--enable-auto-tool-choice"),
        (("--default-chat-template-kwargs.enable_thinking", "true"), "--default-chat-template-kwargs"),
        (("--enable-fastapi-docs",), "--disable-fastapi-docs"),
    ],
)
def test_other_spellings_and_opposites_take_the_planned_flag_away(extra: tuple[str, ...], gone: str) -> None:
    got = argv(*extra, weights_precision="fp8", tool_parser="hermes", reasoning=SWITCHED_OFF)
    assert gone not in got
    assert got[-len(extra) :] == extra


def test_level_zero_stays_eager() -> None:
    assert "--enforce-eager" in argv("-O0")


def test_flags_that_selfhost_does_not_plan_are_passed_on_in_order() -> None:
    extra = ("--seed", "7", "--speculative-config", '{"method":"ngram"}', "--kv-cache-dtype-skip-layers", "0", "1")
    assert argv(*extra)[-len(extra) :] == extra


@pytest.mark.parametrize(
    "extra",
    [
        ("--host", "0.0.0.0"),
        ("--host=0.0.0.0",),
        ("--port", "1"),
        ("--api-key", "sk-1"),
        ("--api_key=sk-1",),
        ("--hf-token", "hf_x"),
        ("--model", "x"),
        ("--served-model-name", "x"),
        ("--uds", "/tmp/x"),
        ("--ssl-keyfile", "k"),
        ("--ssl-certfile=c",),
        ("--config", "f.yaml"),
        ("--headless",),
        ("--device-ids", "0"),
        ("-n", "2"),
    ],
)
def test_what_contradicts_the_allocation_is_refused_by_name(extra: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        argv(*extra)
    assert caught.value.id == "PL063"
    assert "sk-1" not in f"{caught.value.what}{caught.value.why}{caught.value.fix}"


@pytest.mark.parametrize("short", ["--hos", "--api-k", "--po", "--served-model", "--max-model-le", "--ssl-key"])
def test_a_shortened_flag_that_the_engine_would_complete_is_refused(short: str) -> None:
    with pytest.raises(InputError) as caught:
        argv(short, "1")
    assert caught.value.id == "PL069"


def test_a_word_before_any_flag_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        argv("Qwen/Qwen3-4B")
    assert caught.value.id == "PL066"


@pytest.mark.parametrize("extra", [("--enforce-eager", "yes"), ("--no-enforce-eager=1",)])
def test_a_switch_with_a_value_is_refused_and_both_positions_are_named(extra: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        argv(*extra)
    assert caught.value.id == "PL068"
    assert [fix.rpartition(" ")[2] for fix in caught.value.fix] == ["--enforce-eager", "--no-enforce-eager"]
    assert caught.value.why


def test_remote_code_needs_selfhosts_own_consent() -> None:
    with pytest.raises(InputError) as caught:
        argv("--trust-remote-code")
    assert caught.value.id == "PL064"
    assert argv("--trust-remote-code", trust_remote_code=True).count("--trust-remote-code") == 1
    assert "--no-trust-remote-code" in argv("--no-trust-remote-code")


@pytest.mark.parametrize("extra", [("-tp", "2"), ("--tensor-parallel-size=2",), ("-pp", "2"), ("-dp", "2")])
def test_more_parts_than_devices_are_refused(extra: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        argv(*extra)
    assert caught.value.id == "PL067"


def test_parallel_sizes_multiply() -> None:
    two = {**CARD, "devices": ("GPU-a", "GPU-b")}
    assert "2" in argv("-tp", "1", "-pp", "2", **two)
    with pytest.raises(InputError):
        argv("-pp", "2", **two)  # with the planned two of tensor parallel that is four


def test_the_plan_learns_what_was_overridden_and_what_moves_memory() -> None:
    extra = ("--max-model-len=8k", "-q", "fp8_per_block", "--no-enforce-eager", "--seed", "7")
    assert vllm.overridden(extra) == {
        "--max-model-len": "8k",
        "--quantization": "fp8_per_block",
        "--enforce-eager": "false",
        "--seed": "7",
    }
    assert vllm.moves_memory(extra) == ("--max-model-len", "--quantization", "--enforce-eager")


@pytest.mark.parametrize(
    ("text", "count"), [("32k", 32_000), ("32K", 32_768), ("4096", 4096), ("auto", None), ("-1", None), ("1.5k", 1500)]
)
def test_numbers_are_read_as_the_engine_reads_them(text: str, count: int | None) -> None:
    assert vllm.count(text) == count  # vLLM 0.33.0, argument parser: 32K is 32768, 32k is 32000
