"""How fast decoding can be at best, next to rates that were measured, and what a claimed rate implies."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.hosts import cards
from selfhost.hosts.imagined import host_with
from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan import fit_words
from selfhost.plan.claims import Speed, parse_rate, possible, speed_of
from selfhost.plan.decide import Decided, decide_all
from selfhost.plan.memory.question import Spread
from selfhost.plan.roofline import claim
from selfhost.shapes.plan import Verdict
from tests.fakes.planning import GIB, a_service


def fit(alias: str, gpu: str, *, count: int = 1, **wish: Any) -> Decided:
    row = by_alias(alias)
    assert row is not None
    return decide_all(
        host=host_with(gpu, count=count), model=listed(row), service=a_service(alias, **wish), port=8000,
        count=count if count > 1 else None,
    )  # fmt: skip


def speed(decided: Decided, gpu: str, *, claimed: float | None = None) -> Speed:
    card = cards.named(gpu)
    assert card is not None
    answer = decided.answer
    return speed_of(
        decided.question, weights=answer.weights, kv_per_token=answer.raw_bytes_per_token, expert_parameter=1.0,
        bandwidth=card.bandwidth, claimed=claimed,
    )  # fmt: skip


@pytest.mark.parametrize(("text", "rate"), [("14tok/s", 14), ("14", 14), ("14.5 t/s", 14.5), ("9 tokens/s", 9)])
def test_a_rate_is_read_as_people_write_it(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "0", "-3", "14 GB/s", "1e9tok/s", "99999999"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rate(text)
    assert caught.value.id == "CF032"


def test_a_dense_model_cannot_decode_faster_than_it_is_read() -> None:
    """Llama 3.3 70B in FP8 on two cards: 33.8 GiB each without the embedding by 3,352 GB/s: 90 tok/s at 100 %."""
    made = fit("llama-3.3-70b", "H100 SXM 80GB", count=2)
    one = speed(made, "H100 SXM 80GB").floors[0]
    assert one.batch == 1
    assert one.rates[1] < 3352e9 / ((33.8 - 1.0) * GIB)
    assert one.rates[0] > 50


def test_a_measured_rate_of_a_sparse_model_is_within_the_floor() -> None:
    """33 tok/s with vLLM 0.15 (https://github.com/NVIDIA/dgx-spark-playbooks/issues/79) and 50 with SGLang
    (https://corti.com/running-gpt-oss-120b-on-a-single-nvidia-dgx-spark-a-practical-guide/) on a GB10.

    By hand, of a token: 4 of 128 experts of 60.9 GB, stored 3,072 wide instead of 2,880: 2.0 GB; 36 layers of
    attention 1.9 GB and the output head 1.2 GB, in 16 bits; 33 tok/s are 63 % of 273 GB/s, 50 are 95 %.
    """
    made = fit("gpt-oss-120b", "GB10")
    card = cards.named("GB10")
    assert card is not None
    found = speed_of(
        made.question, weights=made.answer.weights, kv_per_token=0, expert_parameter=0.53125, bandwidth=card.bandwidth
    )
    one = found.floors[0]
    assert one.read / 1e9 == pytest.approx(5.2, abs=0.15)
    assert one.rates[0] < 33.5
    assert one.rates[1] > 49


def test_a_batch_of_a_sparse_model_is_no_bound_because_requests_share_experts() -> None:
    """319 tok/s of 32 requests were measured on one GB10, 10 each, where picking apart allows 6
    (https://kubis.ai/blog/dgx_series/benchmarks/gpt-oss-120b-topology-benchmark).
    """
    made = fit("gpt-oss-120b", "GB10")
    text = fit_words.describe(made, speed=speed(made, "GB10"), ways=(), explain=False)
    one, *more = [line for line in text.splitlines() if line.startswith("  decode")]
    assert "at most" in one
    assert all("about" in line and "if each request picks its own experts" in line for line in more)
    dense = fit("qwen3-4b", "RTX 4090")
    assert "about" not in fit_words.describe(dense, speed=speed(dense, "RTX 4090"), ways=(), explain=False)


def test_stages_of_a_pipeline_are_read_one_after_the_other() -> None:
    made = fit("qwen3-4b", "RTX 4090")
    two = replace(made.question, spread=Spread(pipeline=2))
    half, whole = made.answer.weights // 2, made.answer.weights
    split = speed_of(two, weights=half, kv_per_token=0, expert_parameter=1, bandwidth=1e12)
    alone = speed_of(made.question, weights=whole, kv_per_token=0, expert_parameter=1, bandwidth=1e12)
    assert split.floors[0].best == pytest.approx(alone.floors[0].best, rel=0.001)


def test_a_claim_above_the_sheet_is_no_and_one_below_it_is_possible() -> None:
    made = fit("qwen3-4b", "RTX 4090", precision="bf16")
    # 8.04 GB a token: 1,008 GB/s allow 125 tok/s
    assert possible(speed(made, "RTX 4090", claimed=200).claim) is Verdict.DOES_NOT_FIT
    assert possible(speed(made, "RTX 4090", claimed=100).claim) is Verdict.FITS
    assert possible(claim(9, read=1, bandwidth=None)) is None
    assert possible(None) is None
