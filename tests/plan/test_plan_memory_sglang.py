"""SGLang's pools, against numbers that engines printed in public and against sums by hand."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.models.catalog import by_id
from selfhost.plan.memory.fraction_sglang import reserve_mib, static_fraction
from selfhost.plan.memory.kv_sglang import sglang_cache
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import GIB

H100 = Room(name="NVIDIA H100 80GB HBM3", total=int(79.19 * GIB), arch="sm_90", linked=True)


def ask(model: str, version: str = "0.5.23", **more: Any) -> Question:
    row = by_id(model)
    assert row is not None
    return Question(
        engine="sglang", version=version, backend=more.pop("backend", "cuda"), geometry=row.geometry,
        weights=more.pop("weights", Weights(resident=10 * GIB)), room=more.pop("room", H100), **more,
    )  # fmt: skip


def test_a_token_costs_what_the_pool_line_says() -> None:
    # https://github.com/vllm-project/vllm/issues/21348: 367,404 tokens, K and V 8.23 GB each
    asked = ask("Qwen/Qwen3-235B-A22B", spread=Spread(tensor=4), utilization=0.93)
    assert sglang_cache(asked).cell == 94 * 256 * 2
    assert 367_404 * sglang_cache(asked).cell / GIB == pytest.approx(2 * 8.23, abs=0.02)


def test_the_pool_is_what_weights_leave_of_the_static_share() -> None:
    # the same run: 235 B parameters in FP8 blocks on four H100, mem_fraction_static 0.93
    asked = ask(
        "Qwen/Qwen3-235B-A22B", spread=Spread(tensor=4), utilization=0.93,
        weights=Weights(parameters=235.09e9, scheme="fp8_block"),
    )  # fmt: skip
    assert predict(asked).kv_tokens == pytest.approx(367_404, rel=0.06)


@pytest.mark.parametrize(("ranks", "share"), [(1, 0.88), (2, 0.87), (4, 0.85), (8, 0.81), (16, 0.79)])
def test_old_releases_took_a_share_by_the_number_of_ranks(ranks: int, share: float) -> None:
    assert static_fraction(ask("Qwen/QwQ-32B", spread=Spread(tensor=ranks)), (0, 4, 3)) == share


def test_the_reserve_follows_the_rule_of_0_5_23() -> None:
    card = Room(name="NVIDIA GeForce RTX 4090", total=int(23.52 * GIB), arch="sm_89")
    alone = ask("Qwen/Qwen3-8B", room=card)
    # 512 + 1.5 · 4096 + 1024 / 8 + 2 · 48 + 8 · 50 sizes of prefill graphs up to 4096
    assert reserve_mib(alone, (0, 5, 23)) == 512 + 6144 + 128 + 96 + 8 * 50
    assert static_fraction(alone, (0, 5, 23)) == round(1 - 7280 / int(23.52 * 1024), 3)
    assert reserve_mib(replace(alone, max_seqs=4), (0, 5, 23)) == 7280 - 2 * 44
    assert reserve_mib(ask("Qwen/Qwen3-8B", eager=True), (0, 5, 23)) == 512 + 12_288 + 128  # above 10 GiB by itself


def test_large_cards_reserve_ten_gib_at_least() -> None:
    asked = ask("Qwen/Qwen3-8B", batch_tokens=2048)
    assert reserve_mib(asked, (0, 5, 23)) == 10 * 1024


def test_two_pools_where_windowed_layers_have_their_own() -> None:
    # 70,656 full and 56,320 windowed tokens in 12.16 GiB, Gemma 4 26B in SGLang
    cache = sglang_cache(ask("google/gemma-4-26B-A4B-it"))
    assert 70_656 * cache.cell / GIB == pytest.approx(12.16, abs=0.1)
    assert cache.raw == 5 * 2 * 1024 * 2
    one = sglang_cache(ask("google/gemma-3-12b-it"))
    assert one.cell == 48 * 8 * 512 * 2


def test_states_share_the_pool_with_the_tokens() -> None:
    # granite-4.0-h-micro, 0.5.8: 2.77 GB of states in 38 slots, 3.04 GB for 399,740 tokens
    asked = ask("ibm-granite/granite-4.0-h-micro")
    pools = sglang_cache(asked).pools(int((2.77 + 3.04) * GIB))
    assert pools.slots == 37
    assert pools.state_bytes / GIB == pytest.approx(2.77, abs=0.1)
    assert pools.tokens == pytest.approx(399_740, rel=0.03)
    assert sglang_cache(replace(asked, mamba_slots=10)).pools(4 * GIB).slots == 10


def test_a_hybrid_needs_room_for_the_states_of_one_request() -> None:
    cache = sglang_cache(ask("Qwen/Qwen3.5-27B"))
    assert cache.state == 48 * ((2 * 16 * 128 + 48 * 128) * 3 * 2 + 48 * 128 * 128 * 4)
    least = cache.least(100)
    assert cache.pools(least).requests == 1
    assert cache.pools(int(0.9 * least)).requests == 0


def test_states_and_tokens_of_a_hybrid_over_four_ranks() -> None:
    # Nemotron 3 Nano geometry on four GB10: 2,211 slots in 25.28 GB, 19,644,177 tokens in 28.10 GB
    cache = sglang_cache(ask("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", kv="fp8_e4m3", spread=Spread(tensor=4)))
    assert 2212 * cache.state / GIB == pytest.approx(25.28, abs=0.02)
    assert 19_644_177 * cache.cell / GIB == pytest.approx(28.10, abs=0.01)


def test_dp_attention_cuts_heads_over_fewer_ranks() -> None:
    # GLM-4.5-Air, attention over 2 of 4 ranks: 117.52 GB for 1,339,395 tokens
    asked = ask("zai-org/GLM-4.5-Air", spread=Spread(tensor=4, attention_data=2))
    assert sglang_cache(asked).cell == 94_208
    assert pytest.approx(117.52, abs=0.01) == 1_339_395 * 94_208 / GIB


def test_weights_above_the_static_share_do_not_start() -> None:
    answer = predict(ask("deepseek-ai/DeepSeek-R1", weights=Weights(resident=75 * GIB), utilization=0.88))
    assert answer.verdict is Verdict.DOES_NOT_FIT
    assert answer.kv_tokens == 0


def test_need_is_context_times_cell_and_long_requests_are_named() -> None:
    answer = predict(ask("Qwen/Qwen3-8B", context=4096))
    assert answer.kv_needed == 4096 * 36 * 8 * 256 * 2
    small = predict(ask("Qwen/Qwen3-8B", context=10**7))
    assert small.verdict is not Verdict.FITS
    assert any("inside the context" in note for note in small.notes)
    shares = sum(gap.share for gap in answer.gaps)
    assert shares == pytest.approx(answer.effective_bytes_per_token / answer.raw_bytes_per_token - 1, abs=1e-12)
