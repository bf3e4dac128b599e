"""Fit: which way is found first, what is shown of it, in words and in JSON, and ways out."""

import json
from dataclasses import replace
from typing import Any

import pytest

from selfhost.hosts import cards
from selfhost.hosts.imagined import host_with
from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan import fit_json, fit_words
from selfhost.plan.again import again_on
from selfhost.plan.claims import Speed, speed_of
from selfhost.plan.decide import Decided, decide_all
from selfhost.plan.search import USEFUL
from selfhost.plan.ways_out import Door, Way, ways_out
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Verdict
from tests.fakes.planning import GIB, a_service

MATE = Door(verb="fit", place=("--gpu", "RTX 4090"), more_cards=True)


def model(alias: str) -> Model:
    row = by_alias(alias)
    assert row is not None
    return listed(row)


def fit(alias: str, gpu: str | Host, *, count: int = 1, **wish: Any) -> Decided:
    host = host_with(gpu, count=count) if isinstance(gpu, str) else gpu
    return decide_all(
        host=host, model=model(alias), service=a_service(alias, **wish), port=8000, count=count if count > 1 else None
    )


def ways(alias: str, gpu: str, *, door: Door = MATE, **wish: Any) -> dict[str, Way]:
    service = a_service(alias, **wish)
    again = again_on(
        host=host_with(gpu), model=model(alias), port=8000, other=lambda count: host_with(gpu, count=count or 1)
    )
    found = list(ways_out(fit(alias, gpu, **wish).plan, service, again=again, door=door))
    return {way.kind: way for way in found}


def speed(decided: Decided, gpu: str, *, claimed: float | None = None) -> Speed:
    card = cards.named(gpu)
    assert card is not None
    answer = decided.answer
    return speed_of(
        decided.question, weights=answer.weights, kv_per_token=answer.raw_bytes_per_token, expert_parameter=1.0,
        bandwidth=card.bandwidth, claimed=claimed,
    )  # fmt: skip


# ---- what is found first


def test_the_best_precision_with_a_useful_context_comes_before_fewer_bits() -> None:
    made = fit("qwen3-4b", "RTX 3060").plan
    assert (made.weights_precision, made.context) == ("bf16", USEFUL)


def test_fewer_bits_come_before_a_context_that_is_hardly_one() -> None:
    # 14.8 B parameters: 27.5 GiB in BF16 on 23.5 GiB
    made = fit("qwen3-14b", "RTX 3090").plan
    assert made.weights_precision.startswith("fp8")
    assert made.context >= USEFUL


def test_who_asks_for_a_context_gets_that_one_or_none() -> None:
    assert fit("qwen3-4b", "RTX 3060", context=4096).plan.context == 4096
    asked = fit("qwen3-4b", "RTX 3060", context=32768, precision="bf16")
    assert asked.plan.context == 32768
    assert asked.plan.verdict is not Verdict.FITS  # 2.5 GiB are left, 4.5 are needed


def test_two_cards_are_taken_when_one_is_too_small() -> None:
    """Public: two cards of 24 GB serve a 32B in 8 bits. 32.8 GB of weights are 16 GiB each."""
    made = fit("qwen3-32b", "RTX 3090", count=2)
    assert made.question.spread.tensor == 2
    assert made.plan.verdict is Verdict.FITS
    assert made.plan.memory.weights / GIB == pytest.approx(16.0, abs=0.5)


def test_of_what_does_not_fit_the_one_that_lacks_least_is_shown() -> None:
    made = fit("llama-3.3-70b", "RTX 4090")
    assert made.plan.verdict is Verdict.DOES_NOT_FIT
    assert made.plan.weights_precision.startswith("fp8")


# ---- what is settled


def test_memory_shared_with_the_host_gets_a_cache_of_a_size_and_the_share_that_must_be_free() -> None:
    made = fit("qwen3-4b", "GB10")
    need = made.plan.memory.need
    assert made.question.kv_bytes == made.plan.memory.kv_cache
    assert made.question.utilization is not None
    assert need <= made.question.utilization * made.question.room.total <= need + 0.01 * made.question.room.total


def test_a_share_that_the_user_set_is_left_alone() -> None:
    made = fit("qwen3-4b", "GB10", engine_args=("--gpu-memory-utilization", "0.5"))
    assert made.question.utilization == 0.5


def test_a_cache_of_a_given_size_does_not_lift_what_must_be_free_at_the_start() -> None:
    """vLLM 0.33.0, v1/worker/utils.py (request_memory): 92 % must be free even where 1 GiB of cache was asked for."""
    host = host_with("RTX 4090")
    busy = replace(host.accelerators[0], memory_free=Known(15 * GIB, "nvml"))
    made = fit("qwen3-4b", replace(host, accelerators=(busy,)), engine_args=("--kv-cache-memory-bytes", "1G"),
               context=4096)  # fmt: skip
    assert made.plan.verdict is Verdict.TOO_CLOSE
    assert "only 15.0 GiB are free now" in made.answer.why


def test_what_an_unread_flag_does_to_memory_is_uncertain_and_named() -> None:
    made = fit("qwen3-4b", "RTX 4090", engine_args=("--cpu-offload-gb", "4"))
    assert made.plan.verdict is Verdict.TOO_CLOSE
    assert made.answer.why == "unknown: what `--cpu-offload-gb 4` does to memory"


# ---- in words


def test_the_answer_ends_with_the_verdict_and_says_how_it_is_known() -> None:
    made = fit("qwen3-32b", "H100 SXM 80GB")
    lines = fit_words.describe(made, speed=speed(made, "H100 SXM 80GB"), ways=(), explain=False).splitlines()
    assert lines[0] == "qwen3-32b on H100 SXM 80GB · vLLM 0.33.0"
    assert lines[-1].startswith("fits: ")
    fields = [line[2:11].strip() for line in lines if line.startswith("  ")]
    assert fields[:6] == ["weights", "KV cache", "context", "at once", "a token", "memory"]
    assert any(line.startswith("  decode") and "estimated, " in line and "3,352 GB/s" in line for line in lines)
    assert any(line.startswith("  how known") and "measured run" in line for line in lines)


def test_the_sum_of_the_memory_line_is_the_sum_of_what_it_shows() -> None:
    made = fit("qwen3-32b", "H100 SXM 80GB")
    line = fit_words.memory_line(made.answer, total=made.question.room.total)
    parts, _, total = line.partition(" = ")
    shown = [float(part.split()[0]) for part in parts.split(" + ")]
    assert sum(shown) == pytest.approx(float(total.split()[0]), abs=0.01)


def test_what_does_not_fit_shows_no_cache_and_no_speed() -> None:
    made = fit("qwen3-32b", "RTX 4090")
    text = fit_words.describe(made, speed=speed(made, "RTX 4090"), ways=(), explain=False)
    assert "decode" not in text
    assert "KV =" not in text
    assert text.splitlines()[-1].startswith("does not fit: ")


def test_explain_opens_the_arithmetic_in_whole_bytes() -> None:
    made = fit("qwen3-4b", "RTX 4090", precision="bf16")
    text = fit_words.describe(made, speed=None, ways=(), explain=True)
    # 36 layers by 8 heads by 128 by 2 by 2 bytes is a token; one block of 16 tokens is never handed out
    assert "planned with" in text
    assert f"{made.answer.requested:,} B of {made.question.room.total:,} B" in text
    assert f"{(32_768 + 16) * 147_456:,} B for one request of 32,768 tokens" in text


# ---- in JSON


def test_json_says_the_same_in_bytes() -> None:
    made = fit("qwen3-4b", "RTX 4090", precision="bf16")
    body: Any = fit_json.to_json(made, speed=speed(made, "RTX 4090", claimed=200), ways=())
    assert json.loads(json.dumps(body)) == body
    assert (body["schema"], body["ok"], body["verdict"]) == ("selfhost.fit/1", True, "fits")
    assert body["kv"]["raw_bytes_per_token"] == 147_456
    assert body["kv"]["tokens"] == made.answer.kv_tokens
    assert body["memory"]["weights"] == 8_044_000_000
    assert body["decode"]["kind"] == "estimated"
    assert body["claim"]["possible"] is False
    assert body["card"]["count"] == 1


def test_json_without_a_bandwidth_has_no_speed() -> None:
    body = fit_json.to_json(fit("qwen3-4b", "RTX 4090"), speed=None, ways=())
    assert body["decode"] is None
    assert body["claim"] is None


def test_json_holds_each_way_out_with_its_command() -> None:
    found = ways("qwen3-32b", "RTX 4090")
    body: Any = fit_json.to_json(fit("qwen3-32b", "RTX 4090"), speed=None, ways=tuple(found.values()))
    assert body["ok"] is False
    assert [way["kind"] for way in body["ways_out"]] == list(found)
    assert all(way["command"].startswith("selfhost fit ") for way in body["ways_out"])


# ---- ways out


def test_ways_out_are_computed_and_each_of_them_fits() -> None:
    found = ways("qwen3-32b", "RTX 4090")
    assert list(found) == ["smaller weights", "more cards", "smaller model"]
    assert all(way.plan.verdict is Verdict.FITS for way in found.values())
    assert found["smaller weights"].command == "selfhost fit Qwen/Qwen3-32B-AWQ --gpu 'RTX 4090'"
    assert found["more cards"].command == "selfhost fit qwen3-32b --gpu 'RTX 4090' --count 2"


def test_a_context_that_is_too_long_is_shortened_to_the_longest_power_of_two() -> None:
    # 2.5 GiB by 147,456 B are 18,000 tokens: 16,384 are within the estimate's error, 8,192 are not
    found = ways("qwen3-4b", "RTX 3060", context=32768, precision="bf16")
    assert found["less context"].words == "8,192 tokens of context instead of 32,768"
    published = found["smaller weights"]
    assert published.words.startswith("Qwen/Qwen3-4B-FP8, published in FP8; ")
    assert published.command == "selfhost fit Qwen/Qwen3-4B-FP8 --context 32768 --gpu 'RTX 4090'"


def test_a_way_out_is_written_as_it_was_computed() -> None:
    found = ways("qwen3-14b", "RTX 4090", engine="sglang", kv_cache="fp8_e5m2", precision="bf16")
    for way in found.values():
        assert " --engine sglang " in way.command
        assert way.plan.build.engine == "sglang"
    assert " --kv-cache fp8_e5m2 " in found["smaller weights"].command
    assert "--kv-cache" not in found["smaller model"].command


def test_more_cards_are_offered_only_where_cards_are_imagined() -> None:
    assert "more cards" not in ways("qwen3-32b", "RTX 4090", door=Door(verb="up"))


def test_the_smaller_model_is_the_largest_that_fits() -> None:
    chosen = ways("qwen3-32b", "RTX 4090")["smaller model"].plan
    assert isinstance(chosen.model.params_b, Known)
    assert 14 < chosen.model.params_b.value < 32
