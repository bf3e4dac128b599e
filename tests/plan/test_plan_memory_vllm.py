"""vLLM's memory, against numbers that engines printed in public and against sums by hand."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.models.catalog import by_id
from selfhost.plan.memory.kv_vllm import vllm_cache
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.plan.memory.releases import release
from selfhost.shapes.geometry import Experts, Geometry, Latent
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import GIB

H100 = Room(name="NVIDIA H100 80GB HBM3", total=int(79.19 * GIB), arch="sm_90", linked=True)
RTX3090 = Room(name="NVIDIA GeForce RTX 3090", total=int(23.57 * GIB), arch="sm_86")


def shape(model: str) -> Geometry:
    row = by_id(model)
    assert row is not None
    return row.geometry


def ask(model: str, version: str = "0.33.0", **more: Any) -> Question:
    room = more.pop("room", H100)
    weights = more.pop("weights", Weights(resident=10 * GIB))
    backend = more.pop("backend", "cuda")
    return Question(
        engine="vllm", version=version, backend=backend, geometry=shape(model), weights=weights, room=room, **more
    )


def tokens(question: Question, gib: float) -> int:
    """What the engine prints for a KV cache of this size."""
    cache = vllm_cache(question, release("vllm", question.version))
    return cache.tokens(cache.blocks(int(gib * GIB)), question.context or 1)


# ---- one kind of layer


def test_a_refusal_for_qwen3_coder_names_the_length_that_would_fit() -> None:
    # https://github.com/vllm-project/recipes/pull/12: 62.00 GiB needed, 48.66 and 55.65 there; data parallel, tp 1
    asked = ask("Qwen/Qwen3-Coder-480B-A35B-Instruct", "0.10.1.dev101+gbda9d0535", context=262_144)
    cache = vllm_cache(asked, (0, 10, 1))
    assert cache.said_need(262_144) == 62 * GIB
    assert cache.longest(int(48.66 * GIB), 262_144) == 205_728
    assert cache.longest(int(55.65 * GIB), 262_144) in (235_280, 235_296)  # the log rounds to 0.01 GiB


def test_kv_heads_are_copied_where_there_are_more_ranks() -> None:
    model = "Qwen/Qwen3-30B-A3B"  # 4 KV heads
    per_rank = [
        predict(ask(model, context=8192, spread=Spread(tensor=ranks))).raw_bytes_per_token for ranks in (1, 2, 4, 8)
    ]
    assert per_rank == [98_304, 49_152, 24_576, 24_576]
    assert any("copied" in note for note in predict(ask(model, context=8192, spread=Spread(tensor=8))).notes)


def test_latent_attention_is_whole_on_every_rank() -> None:
    alone = predict(ask("deepseek-ai/DeepSeek-V2-Lite-Chat", context=8192))
    four = predict(ask("deepseek-ai/DeepSeek-V2-Lite-Chat", context=8192, spread=Spread(tensor=4)))
    assert alone.raw_bytes_per_token == four.raw_bytes_per_token == 27 * 576 * 2


def test_sparse_attention_keeps_an_indexer_beside_the_latent_vector() -> None:
    asked = ask("deepseek-ai/DeepSeek-V3.2", context=8192, spread=Spread(tensor=8))
    assert predict(asked).raw_bytes_per_token == 61 * (576 * 2 + 132)
    assert predict(replace(asked, kv="fp8")).raw_bytes_per_token == 61 * (656 + 132)


@pytest.mark.parametrize(
    ("kv", "per_token"),
    [
        ("auto", 36 * 8 * 256 * 2),
        ("fp8", 36 * 8 * 256),
        ("fp8_per_token_head", 36 * 8 * (256 + 8)),
        ("int4_per_token_head", 36 * 8 * (128 + 8)),
        ("nvfp4", 36 * 8 * 144),
    ],
)
def test_the_form_of_the_cache_sets_the_bytes_of_a_token(kv: str, per_token: int) -> None:
    assert predict(ask("Qwen/Qwen3-4B", kv=kv, context=8192)).raw_bytes_per_token == per_token


def test_an_unknown_form_is_counted_as_16_bit_and_said() -> None:
    answer = predict(ask("Qwen/Qwen3-4B", kv="fp6_secret", context=8192))
    assert answer.raw_bytes_per_token == 147_456
    assert not answer.exact_kv
    assert any("fp6_secret" in unknown for unknown in answer.unknowns)


def test_turboquant_keeps_two_layers_at_each_end_16_bit() -> None:
    answer = predict(ask("Qwen/Qwen3-4B", kv="turboquant_4bit_nc", context=8192))
    assert answer.raw_bytes_per_token == 8 * (32 * (128 + 6) + 4 * 512)


# ---- windows


@pytest.mark.parametrize(
    ("model", "ranks", "blocks", "printed", "concurrency"),
    [  # start-up logs of vLLM 0.19.0 in https://github.com/llm-d-incubation/llm-d-planner/pull/205
        ("google/gemma-3-4b-it", 1, 204_817, 468_144, "57.05"),
        ("google/gemma-3-27b-it", 1, 15_997, 36_560, "4.46"),
        ("google/gemma-2-9b-it", 1, 21_110, 168_880, "20.60"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 4, 91_495, 365_968, "44.68"),
        ("openai/gpt-oss-20b", 2, 323_972, 2_591_776, "316.07"),
    ],
)
def test_blocks_give_the_tokens_that_0_19_printed(
    model: str, ranks: int, blocks: int, printed: int, concurrency: str
) -> None:
    cache = vllm_cache(ask(model, "0.19.0", context=8192, spread=Spread(tensor=ranks)), (0, 19, 0))
    assert cache.tokens(blocks, 8192) == printed
    assert f"{cache.concurrency(blocks, 8192):.2f}" == concurrency


def test_two_head_sizes_share_a_page_and_windows_keep_two_batches_in_flight() -> None:
    # Gemma 4 E2B: 3 full layers of 512, 12 windowed of 256, one head: pages of 32 KiB for 16 and for 32 tokens.
    cache = vllm_cache(ask("google/gemma-4-E2B-it", "0.29.0", context=16_384, batch_tokens=2048), (0, 29, 0))
    assert cache.block_bytes == 3 * 16 * 512 * 2 * 2
    assert cache.need_blocks(16_384) == 1024 + 4 * (144 + 1)  # 511 + 2 * 2048 tokens in blocks of 32, one more


def test_windows_that_stay_16_bit_beside_fp8_share_its_page() -> None:
    asked = ask("google/gemma-2-9b-it", kv="fp8", context=8192, kv_skip_layers=("sliding_window",))
    full, windowed = vllm_cache(asked, (0, 33, 0)).grouping.kinds
    assert (full.block, windowed.block) == (32, 16)
    assert full.page == windowed.page == 32 * 8 * 512


def test_chunks_keep_the_batches_in_flight_beside_their_own() -> None:
    asked = ask("meta-llama/Llama-4-Scout-17B-16E-Instruct", context=131_072, batch_tokens=2048)
    # 12 full layers in one group, 36 chunked ones in three: 131,072 and 8,192 + 2 * 2,048 tokens in blocks of 16
    assert vllm_cache(asked, (0, 33, 0)).need_blocks(131_072) == 8192 + 3 * 768


# ---- states


def test_groups_of_a_state_are_copied_so_that_each_rank_has_one() -> None:
    # granite-4.0-h-micro: 64 heads of 64, one group of 128: with two ranks the convolution has two groups
    answer = predict(ask("ibm-granite/granite-4.0-h-micro", context=8192, spread=Spread(tensor=2)))
    assert answer.state_bytes == 36 * ((4096 + 2 * 2 * 128) // 2 * 3 * 2 + 32 * 64 * 128 * 2)


@pytest.mark.parametrize(
    ("version", "arch", "block", "pages"),
    [
        ("0.32.0", "sm_90", 784, 2),
        ("0.33.0", "sm_90", 832, 3),  # FlashInfer's prompts: blocks of a multiple of 64, one page more
        ("0.33.0", "sm_120", 832, 3),
        ("0.33.0", "sm_89", 784, 2),
        ("0.27.0", "sm_90", 784, 1),  # prefixes are not kept unless asked for
    ],
)
def test_prefixes_of_a_hybrid_cost_pages_by_release_and_card(version: str, arch: str, block: int, pages: int) -> None:
    asked = ask("Qwen/Qwen3.5-27B", version, room=replace(H100, arch=arch), context=8192)
    cache = vllm_cache(asked, release("vllm", version))
    assert (cache.block_tokens, cache.grouping.kinds[1].states) == (block, pages)


def test_effective_bytes_of_a_hybrid_on_two_cards_add_up() -> None:
    # https://github.com/mitchross/talos-argocd-proxmox/pull/1995: 302,921 tokens, 2.31x for 131,072, 4.99 GiB
    asked = ask(
        "Qwen/Qwen3.5-27B", "0.27", room=RTX3090, kv="fp8_e4m3", context=131_072, kv_bytes=int(208.56 * 25_690_112),
        spread=Spread(tensor=2), prefix_caching=True, max_seqs=2, batch_tokens=8192,
    )  # fmt: skip
    answer = predict(asked)
    assert f"{(asked.kv_bytes or 0) / GIB:.2f}" == "4.99"
    assert (answer.block_tokens, answer.blocks) == (1568, 208)
    assert answer.kv_tokens == 302_921  # 208 / 90 · 131,072
    assert answer.raw_bytes_per_token == 16 * 1024
    assert answer.effective_bytes_per_token / 1024 == pytest.approx(17.27, abs=0.005)
    shares = {gap.name: round(100 * gap.share, 2) for gap in answer.gaps}
    assert shares["block rounding"] == 0.49  # 84 blocks of 1,568
    assert shares["state pages"] == 7.18  # 3 groups, 2 pages each
    assert shares["floor of blocks"] == 0.27  # 208.56 → 208
    whole = answer.effective_bytes_per_token / answer.raw_bytes_per_token - 1
    assert sum(gap.share for gap in answer.gaps) == pytest.approx(whole, abs=1e-12)
    assert 100 * whole == pytest.approx(7.96, abs=0.005)


@pytest.mark.parametrize(
    ("model", "kv", "ranks", "block"),
    [  # "Setting attention block size to … tokens": 784 and 1568 in logs of Qwen3.8-27B, 2096 of Qwen3.6-35B in FP8,
        # 528 of Qwen3.5-4B (vllm-project/vllm#40696), 2048 of Qwen3.5-35B with two ranks is Ascend's own
        ("Qwen/Qwen3.5-27B", "auto", 1, 784),
        ("Qwen/Qwen3.5-27B", "fp8", 1, 1568),
        ("Qwen/Qwen3.5-27B", "fp8", 2, 1568),
        ("Qwen/Qwen3.5-35B-A3B", "fp8", 1, 2096),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "auto", 1, 544),
        ("Qwen/Qwen3.5-4B", "auto", 1, 528),
    ],
)
def test_attention_blocks_grow_until_a_state_fits(model: str, kv: str, ranks: int, block: int) -> None:
    assert vllm_cache(ask(model, kv=kv, spread=Spread(tensor=ranks)), (0, 27)).block_tokens == block


def test_0_19_printed_a_hybrid_by_blocks_and_its_concurrency_by_requests() -> None:
    # https://github.com/vllm-project/vllm/issues/40691: Qwen3.5-27B, 290,864 tokens and 33.04x for 32,768
    cache = vllm_cache(ask("Qwen/Qwen3.5-27B", "0.19.0", context=32_768), (0, 19, 0))
    blocks = 1487  # the only count that gives 33.04 with 42 blocks and 3 states
    assert cache.need_blocks(32_768) == 45
    assert f"{cache.concurrency(blocks, 32_768):.2f}" == "33.04"
    assert cache.tokens(blocks, 32_768) == 290_864


@pytest.mark.parametrize(
    ("context", "printed"),
    [
        (1_048_576, 1_823_372),  # https://github.com/vllm-project/vllm/issues/49011, vLLM 0.25.1, Qwen3.6-27B
        (262_144, 264_640),  # https://github.com/vllm-project/vllm/pull/46329, 0.27.1, Qwen3.8-27B
    ],
)
def test_drafts_add_pages_of_state_and_a_layer_in_nvfp4(context: int, printed: int) -> None:
    asked = ask(
        "Qwen/Qwen3.5-27B", "0.27.1", kv="nvfp4", context=context, spec_tokens=2, draft_layers=1, prefix_caching=True
    )
    cache = vllm_cache(asked, (0, 27, 1))
    full, state = cache.grouping.kinds
    assert (full.count, state.count, cache.grouping.size) == (17, 48, 17)  # `Add 3 padding layers`
    assert full.block == 2832
    blocks = printed * cache.need_blocks(context) / context
    assert blocks == pytest.approx(round(blocks), abs=0.01)  # only the right need makes a whole number of blocks
    assert cache.tokens(round(blocks), context) == printed


def test_a_refusal_on_an_l40s_names_whole_blocks_of_784() -> None:
    cache = vllm_cache(ask("Qwen/Qwen3.5-27B", "0.27", context=262_144), (0, 27))
    assert cache.longest(147 * cache.block_bytes, 262_144) == 112_896  # 144 blocks, 3 states
    assert cache.longest(147 * cache.block_bytes - 1, 262_144) == 112_896 - 784


def test_more_sequences_than_blocks_of_state_do_not_start() -> None:
    asked = ask("Qwen/Qwen3.5-27B", room=RTX3090, weights=Weights(resident=17 * GIB), context=8192, max_seqs=256)
    answer = predict(asked)
    assert answer.blocks < 256
    assert answer.verdict is not Verdict.FITS
    assert "sequences" in answer.why
    assert "sequences" not in predict(replace(asked, max_seqs=4)).why


# ---- budget and verdict


def test_graphs_come_out_of_the_cache_from_0_21_on() -> None:
    asked = ask("Qwen/Qwen3-8B", "0.20.1", context=8192, utilization=0.9)
    before, after = predict(asked), predict(replace(asked, version="0.21.0"))
    assert before.graphs == after.graphs_after == 0
    assert before.graphs_after == after.graphs > 0
    assert predict(replace(asked, version="0.21.0", eager=True)).graphs == 0


def test_the_peak_fell_with_0_17() -> None:
    # Qwen3-14B on an H100, https://github.com/llm-d-incubation/llm-d-planner/pull/205: 5.64 GiB, then 2.23
    asked = ask("Qwen/Qwen3-14B", "0.16.0", context=8192, utilization=0.95)
    assert predict(asked).activation_peak / GIB == pytest.approx(5.64, abs=0.15)
    assert predict(replace(asked, version="0.17.0")).activation_peak / GIB == pytest.approx(2.23, abs=0.1)


def test_a_card_that_others_use_is_refused_like_the_engine_does() -> None:
    busy = replace(H100, free=60 * GIB)
    answer = predict(ask("Qwen/Qwen3-8B", room=busy, context=8192, utilization=0.9))
    assert answer.verdict is Verdict.DOES_NOT_FIT
    assert "other programs" in answer.why


def test_near_the_need_it_is_too_close_to_call() -> None:
    asked = ask("Qwen/Qwen3-32B", context=40_960, utilization=0.9)
    left = predict(asked).kv_available
    needed = predict(asked).kv_needed
    assert needed is not None
    for off, verdict in ((4, Verdict.FITS), (0, Verdict.TOO_CLOSE), (-4, Verdict.DOES_NOT_FIT)):
        weights = Weights(resident=10 * GIB + left - needed - off * GIB)
        assert predict(replace(asked, weights=weights)).verdict is verdict


def test_weights_larger_than_the_card_do_not_fit_and_no_length_does() -> None:
    answer = predict(ask("Qwen/Qwen3-32B", room=RTX3090, weights=Weights(resident=61 * GIB)))
    assert answer.verdict is Verdict.DOES_NOT_FIT
    assert answer.kv_available < 0
    assert (answer.longest, answer.kv_tokens, answer.context, answer.kv_needed) == (0, 0, None, None)


def test_without_a_context_the_longest_that_fits_is_answered() -> None:
    answer = predict(ask("Qwen/Qwen3-32B", weights=Weights(resident=61 * GIB), native=131_072, utilization=0.9))
    assert 0 < answer.longest < 131_072
    assert answer.context == answer.longest
    assert predict(ask("Qwen/Qwen3-8B", native=40_960)).longest == 40_960


def test_shared_memory_keeps_a_reserve_for_the_host() -> None:
    whole = 100 * GIB
    spark = Room(name="NVIDIA GB10", total=whole, arch="sm_121", unified=True)
    given = ask("Qwen/Qwen3-8B", room=spark, context=8192, kv_bytes=68 * GIB)
    assert predict(given).verdict is Verdict.TOO_CLOSE
    assert predict(replace(given, room=replace(spark, unified=False))).verdict is Verdict.FITS
    assert predict(replace(given, room=replace(spark, total=2 * whole))).verdict is Verdict.FITS
    share = predict(replace(given, kv_bytes=None, utilization=0.95))
    assert "5.0 GiB are left to the system in this memory, 10.0 GiB are safe" in share.notes


def test_the_stage_with_the_sampler_binds() -> None:
    # Llama 3.1 8B on two H100 as stages, 0.19.0, llm-d-planner#205: the log's 66.54 GiB are the first stage's,
    # its 67,207 blocks of 1 MiB the last one's: 65.63 GiB
    answer = predict(
        ask("meta-llama/Llama-3.1-8B-Instruct", "0.19.0", weights=Weights(resident=int(7.51 * GIB)), context=8192,
            utilization=0.95, spread=Spread(pipeline=2))
    )  # fmt: skip
    assert answer.blocks == pytest.approx(67_207, rel=0.005)


def test_an_inexact_shape_is_computed_and_said() -> None:
    odd = Geometry(
        layers=10, full_layers=10, hidden=1024, heads=16, kv_heads=1, head_dim=576, vocab=32_000, exact=False,
        latent=Latent(rank=512, rope=64), experts=Experts(count=8, top_k=2, inter=512, layers=10), note="new kind",
    )  # fmt: skip
    answer = predict(replace(ask("Qwen/Qwen3-4B", context=4096), geometry=odd))
    assert not answer.exact_kv
    assert any("new kind" in note for note in answer.notes)
